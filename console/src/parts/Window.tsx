// A dialog. Escape closes an open drop-down in it first, and only then the dialog.

import { Modal, type ModalProps, Text } from "@mantine/core";
import { useWindowEvent } from "@mantine/hooks";

interface Props extends Omit<ModalProps, "title" | "opened" | "onClose" | "closeOnEscape"> {
  title: string;
  close: () => void;
}

export function Window({ title, close, children, ...more }: Props) {
  const onKey = (event: KeyboardEvent) => {
    if (event.key === "Escape" && !event.isComposing && !dropdownIsOpen()) close();
  };
  useWindowEvent("keydown", onKey, { capture: true }); // before the drop-down closes itself
  return (
    <Modal opened onClose={close} closeOnEscape={false} title={<Text fw={650}>{title}</Text>} {...more}>
      {children}
    </Modal>
  );
}

function dropdownIsOpen(): boolean {
  const lists = document.querySelectorAll<HTMLElement>('[role="listbox"]');
  return [...lists].some((list) => list.checkVisibility());
}
