/** What a command takes and does, as people are told and as its words are read. */
export interface CommandDescription {
  /** One word, or two for a command below another one: "config diff". */
  readonly name: string;
  readonly group: CommandGroup;
  /** One line for the list of commands: what it does, in small letters, without a full stop. */
  readonly summary: string;
  /** Sentences for its help. */
  readonly description: string;
  readonly operands?: readonly OperandDescription[];
  readonly options: OptionTable;
  /** What the words after "--" are, which it passes on as they are; in capitals. */
  readonly passesOn?: string;
  /** It takes every flag of the agent besides its own options. */
  readonly takesAgentFlags?: true;
  readonly examples: readonly CommandExample[];
  /** Exit codes that mean something else than everywhere. */
  readonly exits?: readonly { readonly code: string; readonly means: string }[];
  /** People are not told of it: programs call it. */
  readonly isHidden?: true;
  /** It stands for a process that logs, not for a person's question: its own lines are those of a log. */
  readonly isProcess?: true;
}

export const commandGroups = {
  pods: "Pods of this node",
  node: "This node",
  machine: "One machine",
  nodelet: "nodelet itself",
} as const;

export type CommandGroup = keyof typeof commandGroups;

/** A word without a dash. */
export interface OperandDescription {
  /** In capitals. */
  readonly name: string;
  readonly means: string;
  readonly presence: "required" | "optional" | "repeated";
  readonly completes?: Completion;
}

/** What the shell offers for a word: what is asked of the running agent, directories, commands, or these words. */
export type Completion = "pod" | "container" | "directory" | "command" | readonly string[];

export type OptionTable = Readonly<Record<string, OptionDescription>>;

interface AnyOption {
  /** One letter. */
  readonly short?: string;
  readonly means: string;
  readonly isRequired?: true;
}

interface ValueOption extends AnyOption {
  /** What stands for the value in the usage, in capitals. */
  readonly value: string;
  readonly completes?: Completion;
}

export type OptionDescription =
  | (AnyOption & { readonly type: "flag" })
  | (ValueOption & { readonly type: "text"; readonly default?: string })
  /** May be given several times. */
  | (ValueOption & { readonly type: "texts" })
  | (AnyOption & { readonly type: "choice"; readonly values: readonly string[]; readonly default: string })
  /** A whole number from 0 on; where `orAll`, -1 stands for all there is, as with kubectl. */
  | (ValueOption & { readonly type: "count"; readonly default?: number; readonly orAll?: true })
  /** A number of seconds, or a duration such as 5m; read as milliseconds. */
  | (ValueOption & { readonly type: "time"; readonly default?: string });

export interface CommandExample {
  /** Without "nodelet". */
  readonly line: string;
  readonly means: string;
}

/** What an option comes to once its words are read. */
export type OptionValue<Option> = Option extends { readonly type: "flag" }
  ? boolean
  : Option extends { readonly type: "choice"; readonly values: readonly (infer Value)[] }
    ? Value
    : Option extends { readonly type: "texts" }
      ? readonly string[]
      : Option extends { readonly type: "text" }
        ? Sure<Option, string>
        : Sure<Option, number>;

/** There is a value for certain where one is required or stands in for none. */
type Sure<Option, Value> = Option extends { readonly default: unknown } | { readonly isRequired: true }
  ? Value
  : Value | undefined;

export type OptionValues<Options> = { readonly [Name in keyof Options]: OptionValue<Options[Name]> };
