// The frame around every page: project switcher, navigation, account menu, and whether the page is live.

import { ActionIcon, AppShell, Box, Burger, Group, Menu, Text, Tooltip, useMantineColorScheme } from "@mantine/core";
import { useDisclosure } from "@mantine/hooks";
import { IconDeviceDesktop, IconLogout, IconMoon, IconSun, IconUserCircle } from "@tabler/icons-react";
import { useEffect } from "react";
import { Link, Navigate, Outlet, useLocation } from "react-router";
import { whenSignedOut } from "../api/client";
import { Live, useStanding } from "../live/Live";
import { Waiting } from "../parts/Page";
import { ProblemNote } from "../parts/ProblemNote";
import { Dot } from "../parts/State";
import { type Me, signedOut, signOut, useMe, usePermissions, useWide } from "../session/session";
import { Logo } from "./Logo";
import { Nav } from "./Nav";
import { usePlace } from "./place";
import { Switcher } from "./Switcher";

export function Shell() {
  const me = useMe();
  const here = useLocation();
  useEffect(() => whenSignedOut(signedOut), []);
  if (me.error)
    return (
      <Box p="xl">
        <ProblemNote error={me.error} again={() => me.refetch()} />
      </Box>
    );
  if (me.data === undefined)
    return (
      <Box p="xl" maw={700} mx="auto">
        <Waiting />
      </Box>
    );
  if (me.data === null)
    return <Navigate to={`/sign-in?to=${encodeURIComponent(here.pathname + here.search)}`} replace />;
  return <Framed me={me.data} />;
}

/** A tenant's events include those of its projects: a user who may read them follows the whole tenant. */
function Framed({ me }: { me: Me }) {
  const { project, tenant } = usePlace();
  const wide = useWide(tenant?.id);
  const held = usePermissions({ tenant_id: tenant?.id }, wide && Boolean(tenant));
  const ofTenant = wide && held?.has("ledger.event.read") ? tenant?.id : undefined;
  const known = !wide || held !== undefined;
  const ofProject = known ? project?.id : undefined;
  return (
    <Live tenantId={ofTenant} projectId={ofProject}>
      <Frame me={me} live={Boolean(project || ofTenant)} />
    </Live>
  );
}

function Frame({ me, live }: { me: Me; live: boolean }) {
  const [opened, menu] = useDisclosure(false);
  const { pathname } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: navigation closes the menu
  useEffect(menu.close, [pathname]);
  return (
    <AppShell
      header={{ height: 56 }}
      navbar={{ width: 232, breakpoint: "sm", collapsed: { mobile: !opened } }}
      padding={{ base: "md", sm: "xl" }}
    >
      <a className="skip" href="#main">
        Skip to content
      </a>
      <AppShell.Header px="md" style={{ background: "var(--surface)", borderColor: "var(--line)" }}>
        <Group h="100%" justify="space-between" wrap="nowrap" gap="xs">
          <Group gap="sm" wrap="nowrap" style={{ minWidth: 0 }}>
            <Burger opened={opened} onClick={menu.toggle} hiddenFrom="sm" size="sm" aria-label="Menu" />
            <Link to="/" aria-label="GPUaaS, start page" style={{ display: "flex" }}>
              <Logo />
            </Link>
            <Switcher me={me} />
          </Group>
          <Group gap="xs" wrap="nowrap">
            {live && <LiveMark />}
            <SchemeMenu />
            <PersonMenu me={me} />
          </Group>
        </Group>
      </AppShell.Header>
      <AppShell.Navbar p="sm" style={{ background: "var(--surface)", borderColor: "var(--line)", overflowY: "auto" }}>
        <Nav />
      </AppShell.Navbar>
      <AppShell.Main id="main" tabIndex={-1} style={{ outline: "none" }}>
        <Outlet />
      </AppShell.Main>
    </AppShell>
  );
}

const STANDING = {
  live: { tone: "good", word: "Live", about: "Updates as things change." },
  connecting: { tone: "still", word: "Connecting", about: "Connecting to live updates." },
  lost: {
    tone: "warn",
    word: "Reconnecting",
    about: "Connection lost. Updates resume where they stopped.",
  },
} as const;

function LiveMark() {
  const { tone, word, about } = STANDING[useStanding()];
  return (
    <Tooltip label={about}>
      <Group gap={6} wrap="nowrap" role="status" aria-label={`${word}: ${about}`} data-live={word}>
        <Dot tone={tone} />
        <Text size="xs" c="dimmed" visibleFrom={tone === "warn" ? undefined : "xs"}>
          {word}
        </Text>
      </Group>
    </Tooltip>
  );
}

const SCHEMES = [
  ["light", "Light", IconSun],
  ["dark", "Dark", IconMoon],
  ["auto", "System", IconDeviceDesktop],
] as const;

function SchemeMenu() {
  const { setColorScheme, colorScheme } = useMantineColorScheme();
  const Icon = SCHEMES.find(([scheme]) => scheme === colorScheme)?.[2] ?? IconSun;
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label="Colour scheme">
          <Icon size={19} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        {SCHEMES.map(([scheme, title, Mark]) => (
          <Menu.Item key={scheme} leftSection={<Mark size={16} />} onClick={() => setColorScheme(scheme)}>
            {title}
          </Menu.Item>
        ))}
      </Menu.Dropdown>
    </Menu>
  );
}

function PersonMenu({ me }: { me: Me }) {
  return (
    <Menu>
      <Menu.Target>
        <ActionIcon variant="subtle" color="gray" size="lg" aria-label={`Signed in as ${me.principal.name}`}>
          <IconUserCircle size={21} />
        </ActionIcon>
      </Menu.Target>
      <Menu.Dropdown>
        <Box px="sm" py={6}>
          <Text size="sm" fw={600}>
            {me.principal.name}
          </Text>
          <Text size="xs" c="dimmed">
            {me.principal.email}
          </Text>
        </Box>
        <Menu.Divider />
        <Menu.Item leftSection={<IconLogout size={16} />} onClick={() => signOut()}>
          Sign out
        </Menu.Item>
      </Menu.Dropdown>
    </Menu>
  );
}
