// The actions of a resource: the main ones as buttons, the rest in a menu, each with its reason if it is not possible.

import { ActionIcon, Box, Button, Menu, Text } from "@mantine/core";
import { IconChevronDown, IconDots, IconLock } from "@tabler/icons-react";
import { Fragment, lazy, Suspense, useState } from "react";
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
  const missing = rest.filter((offer) => !offer.mine).map((offer) => needed(offer.permission));
  const shared = missing.length > 1 && missing.every((one) => one === missing[0]) ? missing[0] : undefined;
  const firstLocked = shared ? rest.find((offer) => !offer.mine) : undefined;
  const reasonOf = (offer: Known) => (offer.mine ? offer.reason : shared ? "" : needed(offer.permission));
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
              <Fragment key={offer.key}>
                {offer === firstLocked && <Menu.Label>{shared}</Menu.Label>}
                <Item offer={offer} why={reasonOf(offer)} choose={() => choose(offer)} />
              </Fragment>
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

type Known = Offer & { mine: boolean }; // whether the user has the permission

/** What is possible comes first, what cannot be undone after it, then what is not possible, then what is not permitted. */
function rank(offer: Known): number {
  if (!offer.mine) return 3;
  return offer.allowed ? Number(offer.danger ?? false) : 2;
}

function Item({ offer, why, choose }: { offer: Known; why: string; choose: () => void }) {
  const open = offer.allowed && offer.mine;
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
        {!open && why && (
          <Text size="xs" c="dimmed">
            {why}
          </Text>
        )}
      </Box>
    </Menu.Item>
  );
}
