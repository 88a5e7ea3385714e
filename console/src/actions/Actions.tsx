// The actions of a resource: the main ones as buttons, the rest in a menu, each with its reason if it is not possible.

import { ActionIcon, Box, Button, Menu, Text } from "@mantine/core";
import { IconChevronDown, IconDots, IconLock } from "@tabler/icons-react";
import { lazy, Suspense, useState } from "react";
import { useNeeded } from "../session/roles";
import { useMay } from "../session/session";
import type { Target } from "./ask";
import type { Offer } from "./offers";

const Dialog = lazy(async () => ({ default: (await import("./Dialog")).Dialog }));

interface Props {
  offers: Offer[];
  target: Target;
  kind: "instance" | "member" | "operation";
  name: string; // of the resource, to be typed where the action cannot be undone
  compact?: boolean;
}

export function Actions({ offers, target, kind, name, compact }: Props) {
  const [chosen, choose] = useState<Offer | null>(null);
  const may = useMay({ project_id: target.projectId });
  const needed = useNeeded(target.projectId);
  const shown = offers.map((offer) => ({ ...offer, mine: may(offer.permission) }));
  const main = compact ? [] : shown.filter((offer) => offer.allowed && offer.mine && offer.main);
  const rest = shown.filter((offer) => !main.includes(offer)).sort((a, b) => rank(a) - rank(b));
  return (
    <>
      {main.map((offer, place) => (
        <Button
          key={offer.key}
          variant={place === 0 && !offer.undoes ? "filled" : "default"}
          onClick={() => choose(offer)}
        >
          {offer.title}
        </Button>
      ))}
      {rest.length > 0 && (
        <Menu width={320}>
          <Menu.Target>
            {compact ? (
              <ActionIcon variant="subtle" color="gray" aria-label={`Actions of ${name}`}>
                <IconDots size={18} />
              </ActionIcon>
            ) : (
              <Button variant="default" rightSection={<IconChevronDown size={15} />}>
                {main.length ? "More" : "Actions"}
              </Button>
            )}
          </Menu.Target>
          <Menu.Dropdown>
            {rest.map((offer) => (
              <Item key={offer.key} offer={offer} needed={needed} choose={() => choose(offer)} />
            ))}
          </Menu.Dropdown>
        </Menu>
      )}
      {chosen && (
        <Suspense>
          <Dialog offer={chosen} target={target} kind={kind} name={name} close={() => choose(null)} />
        </Suspense>
      )}
    </>
  );
}

/** What is possible comes first, what cannot be undone after it, what is not possible last. */
function rank(offer: Offer & { mine: boolean }): number {
  return offer.allowed && offer.mine ? Number(offer.danger ?? false) : 2;
}

function Item(props: { offer: Offer & { mine: boolean }; needed: (permission: string) => string; choose: () => void }) {
  const { offer, needed, choose } = props;
  const open = offer.allowed && offer.mine;
  const why = offer.mine ? offer.reason : needed(offer.permission);
  return (
    <Menu.Item
      onClick={open ? choose : undefined}
      aria-disabled={!open}
      closeMenuOnClick={open}
      leftSection={open ? undefined : <IconLock size={15} />}
      style={open ? undefined : { cursor: "default" }}
    >
      <Box>
        <Text size="sm" c={open ? (offer.danger ? "var(--bad)" : undefined) : "dimmed"} fw={500}>
          {offer.title}
        </Text>
        {!open && (
          <Text size="xs" c="dimmed">
            {why}
          </Text>
        )}
      </Box>
    </Menu.Item>
  );
}
