/// <reference types="vitest/config" />
import react from "@vitejs/plugin-react";
import { defineConfig } from "vite";

// The core serves what is built here. In development: `pnpm vite` beside a core on port 8080.
export default defineConfig({
  plugins: [react()],
  resolve: { alias: { "@rjsf/validator-ajv8": new URL("src/deploy/noAjv.ts", import.meta.url).pathname } },
  build: {
    outDir: "../core/src/gpuaas_core/console_files",
    emptyOutDir: true,
    assetsInlineLimit: 0,
    modulePreload: { polyfill: false },
    chunkSizeWarningLimit: 700,
  },
  server: { proxy: { "/v1": "http://127.0.0.1:8080" } },
  test: { include: ["tests/**/*.test.ts"] },
});
