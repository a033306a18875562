export interface ScreenSize {
  readonly columns: number;
  readonly rows: number;
}

/** What serial consoles, and shells in containers, say of a size that nobody has told them: nothing, or none. */
export function terminalSize(said: { readonly columns?: number; readonly rows?: number }): ScreenSize {
  return { columns: said.columns || 80, rows: said.rows || 24 };
}
