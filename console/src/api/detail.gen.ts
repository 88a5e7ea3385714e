// Generated from contracts/adapter-detail.schema.json by `make console`.

export type paths = Record<string, never>;
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /**
         * AdapterDetail
         * @description Optional well-known parts of `adapter_detail`; everything else is opaque.
         */
        AdapterDetail: {
            /**
             * Checks
             * @default null
             */
            checks?: components["schemas"]["Check"][] | null;
            /**
             * Drift
             * @description Of an instance: unexpected changes.
             * @default null
             */
            drift?: components["schemas"]["Drift"][] | null;
            /**
             * @description Of a member or its drain: what it waits for.
             * @default null
             */
            forecast?: components["schemas"]["Forecast"] | null;
            /**
             * Host
             * @description The machine it failed on.
             * @default null
             */
            host?: string | null;
            /**
             * @description Of an operation that was not tried: the failure before.
             * @default null
             */
            last_failure?: components["schemas"]["LastFailure"] | null;
            /**
             * Log
             * @description The last lines of the service's log.
             * @default null
             */
            log?: string[] | null;
            /**
             * Output
             * @description What the failed command printed.
             * @default null
             */
            output?: string | null;
            /**
             * Preflight
             * @description The checks made before anything was changed.
             * @default null
             */
            preflight?: components["schemas"]["HostChecks"][] | null;
            /**
             * Step
             * @description The step it failed at.
             * @default null
             */
            step?: string | null;
            /**
             * Units
             * @default null
             */
            units?: components["schemas"]["Unit"][] | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * Check
         * @description One question that was asked of a machine or a service, and its answer.
         */
        Check: {
            /**
             * Check
             * @description Its short name, e.g. `ports_free`.
             * @default null
             */
            check?: string | null;
            /**
             * Ok
             * @description Whether it passed.
             * @default null
             */
            ok?: boolean | null;
            /**
             * Sentence
             * @description What was found, as a sentence.
             * @default null
             */
            sentence?: string | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * Drift
         * @description One difference between what the platform set up and what is there.
         */
        Drift: {
            /**
             * Adopt
             * @description How to keep the change.
             * @default null
             */
            adopt?: string | null;
            /**
             * Kind
             * @description Who changed it, as far as that can be seen.
             * @default null
             */
            kind?: string | null;
            /**
             * Revert
             * @description How to undo the change.
             * @default null
             */
            revert?: string | null;
            /**
             * Said
             * @description The difference, as a sentence.
             * @default null
             */
            said?: string | null;
            /**
             * What
             * @description The thing that differs, e.g. a file.
             * @default null
             */
            what?: string | null;
            /**
             * Where
             * @description The machine.
             * @default null
             */
            where?: string | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * Forecast
         * @description What a member that is being drained still waits for.
         */
        Forecast: {
            /**
             * At Deadline
             * @description `requeue`: jobs are requeued then; otherwise the member is kept.
             * @default null
             */
            at_deadline?: string | null;
            /**
             * Deadline At
             * @description When the drain gives up, if it does.
             * @default null
             */
            deadline_at?: string | null;
            /**
             * Free At
             * @description When it is free at the latest; null: no job has a time limit.
             * @default null
             */
            free_at?: string | null;
            /**
             * Jobs
             * @description What still runs, one row each.
             * @default null
             */
            jobs?: {
                [key: string]: unknown;
            }[] | null;
            /**
             * Jobs Total
             * @description How many there are, when `jobs` is cut short.
             * @default null
             */
            jobs_total?: number | null;
        } & {
            [key: string]: unknown;
        };
        /** HostChecks */
        HostChecks: {
            /**
             * Checks
             * @default null
             */
            checks?: components["schemas"]["Check"][] | null;
            /**
             * Host
             * @description The machine.
             * @default null
             */
            host?: string | null;
        } & {
            [key: string]: unknown;
        };
        /** LastFailure */
        LastFailure: {
            /**
             * Checks
             * @default null
             */
            checks?: components["schemas"]["Check"][] | null;
            /**
             * Host
             * @description The machine it failed on.
             * @default null
             */
            host?: string | null;
            /**
             * Log
             * @description The last lines of the service's log.
             * @default null
             */
            log?: string[] | null;
            /**
             * Operation Id
             * @description The operation that failed.
             * @default null
             */
            operation_id?: string | null;
            /**
             * Output
             * @description What the failed command printed.
             * @default null
             */
            output?: string | null;
            /**
             * Preflight
             * @description The checks made before anything was changed.
             * @default null
             */
            preflight?: components["schemas"]["HostChecks"][] | null;
            /**
             * Step
             * @description The step it failed at.
             * @default null
             */
            step?: string | null;
            /**
             * Units
             * @default null
             */
            units?: components["schemas"]["Unit"][] | null;
        } & {
            [key: string]: unknown;
        };
        /**
         * Unit
         * @description A service as systemd reports it.
         */
        Unit: {
            /**
             * Active
             * @description `active`, `inactive`, `failed`, …
             * @default null
             */
            active?: string | null;
            /**
             * Result
             * @default null
             */
            result?: string | null;
            /**
             * Sub
             * @default null
             */
            sub?: string | null;
            /**
             * Unit
             * @description e.g. `sshd.service`
             * @default null
             */
            unit?: string | null;
        } & {
            [key: string]: unknown;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
