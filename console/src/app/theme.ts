// Colours and shapes of the console. Every text colour here keeps 4.5:1 on its background, in light and dark.

import { type CSSVariablesResolver, createTheme, type MantineColorsTuple } from "@mantine/core";

const iris: MantineColorsTuple = [
  "#eef2ff",
  "#e0e7ff",
  "#c7d2fe",
  "#a5b4fc",
  "#818cf8",
  "#6366f1",
  "#4f46e5",
  "#4338ca",
  "#3730a3",
  "#312e81",
];

// From text to background, with a touch of the primary colour.
const dark: MantineColorsTuple = [
  "#dfe2ea",
  "#b4bac8",
  "#8f96a6",
  "#5d6475",
  "#3a4050",
  "#2a2e3b",
  "#1f2330",
  "#171a23",
  "#12151d",
  "#0f1117",
];

const FONT =
  'Inter, "Inter Variable", ui-sans-serif, system-ui, -apple-system, "Segoe UI", Roboto, "Helvetica Neue", sans-serif';

export const theme = createTheme({
  primaryColor: "iris",
  colors: { iris, dark },
  primaryShade: { light: 6, dark: 6 },
  fontFamily: FONT,
  fontFamilyMonospace: 'ui-monospace, "SF Mono", "JetBrains Mono", Menlo, Consolas, "DejaVu Sans Mono", monospace',
  headings: { fontFamily: FONT, fontWeight: "650" },
  defaultRadius: "md",
  cursorType: "pointer",
  respectReducedMotion: true,
  components: {
    Card: { defaultProps: { withBorder: true, radius: "lg", padding: "lg" } },
    Table: { defaultProps: { verticalSpacing: "sm", horizontalSpacing: "lg" } },
    Modal: { defaultProps: { radius: "lg", centered: true, closeButtonProps: { "aria-label": "Close" } } },
    Tooltip: {
      defaultProps: { withArrow: true, multiline: true, maw: 320, events: { hover: true, focus: true, touch: true } },
    },
    // Without the placeholder the first item has the focus, and a menu holds nothing but its items.
    Menu: { defaultProps: { shadow: "md", radius: "md", position: "bottom-end", withInitialFocusPlaceholder: false } },
    Notification: { defaultProps: { closeButtonProps: { "aria-label": "Dismiss" } } },
    Loader: { defaultProps: { type: "dots" } },
  },
});

export const variables: CSSVariablesResolver = () => ({
  variables: {},
  light: {
    "--mantine-color-body": "#fafafc",
    "--mantine-color-dimmed": "#5b6172",
    "--mantine-color-placeholder": "#6b7080",
    "--mantine-color-error": "#b91c1c",
    "--surface": "#ffffff",
    "--line": "#e6e7ee",
    "--good": "#15803d",
    "--busy": "#4f46e5",
    "--warn": "#b45309",
    "--bad": "#b91c1c",
    "--still": "#6b7280",
    "--good-wash": "#f0fdf4",
    "--busy-wash": "#eef2ff",
    "--warn-wash": "#fffbeb",
    "--bad-wash": "#fef2f2",
    "--still-wash": "#f4f4f7",
  },
  dark: {
    "--mantine-color-text": "#dfe2ea",
    "--mantine-color-bright": "#f4f5f9",
    "--mantine-color-body": "#0f1117",
    "--mantine-color-dimmed": "#a3a9b8",
    "--mantine-color-placeholder": "#8f96a6",
    "--mantine-color-error": "#fca5a5",
    "--mantine-color-anchor": "#a5b4fc",
    "--surface": "#171a23",
    "--line": "#2a2e3b",
    "--good": "#4ade80",
    "--busy": "#a5b4fc",
    "--warn": "#fbbf24",
    "--bad": "#f87171",
    "--still": "#9ca3af",
    "--good-wash": "#11251b",
    "--busy-wash": "#1b1d3a",
    "--warn-wash": "#2a2110",
    "--bad-wash": "#2c1518",
    "--still-wash": "#1d212c",
  },
});
