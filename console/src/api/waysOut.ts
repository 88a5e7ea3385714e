// What to do about an error, in the console's own terms. The API's text is for its callers and names fields and
// commands; the console has buttons and pages instead.

import type { ErrorCode } from "./facts.gen";

const HERE: Partial<Record<ErrorCode, string>> = {
  action_not_supported: "The app does not offer this action here. The instance's menu lists what it offers.",
  allocation_kept_for_other: "Choose a machine that is not reserved for another app.",
  allocation_not_active: "Wait until the machine is active, or choose another one.",
  allocation_unknown: "Choose one of this project's machines.",
  app_not_entitled: "Ask a tenant administrator to enable the app for this project.",
  change_refused: "Keep the listed settings as they are, or deploy another instance with the new ones.",
  email_domains_needed: "Enter the e-mail domains, or leave the default role empty and invite people.",
  inputs_invalid: "Correct the listed settings.",
  invalid_request: "Correct the listed fields.",
  machine_not_clean: "Check the machine and confirm that it is clean before you use it again.",
  machine_reports: "Remove the member instead, or switch the machine off and wait until it is shown as unknown.",
  node_held: "Release its allocation first.",
  node_not_ready: "Wait until the machine reports, or choose another one.",
  operation_live: "Wait until the running operation has finished, or cancel it.",
  operator_unusable: "Choose an enabled service account with the App operator role, or none.",
  password_wrong: "Enter your current password.",
  permission_denied: "Ask an administrator of the project or tenant for a role with this permission.",
  permission_not_lendable: "Leave this permission out.",
  permission_unknown: "Choose a permission from the list.",
  placement_invalid: "Choose as many machines as the topology needs.",
  policy_denied: "Choose another value, or ask the owner of the policy.",
  precondition_failed: "Reload the page, check the current values, and try again.",
  quota_exceeded: "Release machines that are not needed, or ask a tenant administrator for a higher quota.",
  role_not_bindable: "Choose a role that can be assigned in this scope.",
  sign_in_refused: "Check your e-mail address and password and try again.",
  tenant_needed: "Enter the short name of your organisation.",
  too_many_guesses: "Wait a moment, then try again.",
  unauthenticated: "Sign in again.",
  version_unchanged: "Choose another version.",
  wrong_state: "Reload the page to see what is possible now.",
};

export function wayOutOf(code: string, text: string): string {
  return (HERE as Record<string, string | undefined>)[code] ?? withoutCommands(text);
}

/** Without commands in brackets and without the marks of code. */
function withoutCommands(text: string): string {
  return text.replace(/ \([^()]*`[^()]*\)/g, "").replaceAll("`", "");
}
