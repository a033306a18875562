// The scripts know nothing of the commands: on every tab they hand the line to nodelet, so they never grow old.

const bash = `# bash completion for nodelet
_nodelet() {
  local line=\${COMP_LINE:0:COMP_POINT} word cut
  word=\${line##*[[:space:]]}
  # bash takes words apart at = and :, and wants only what follows.
  cut=\${word%"\${word##*[=:]}"}
  mapfile -t COMPREPLY < <("\${COMP_WORDS[0]}" __complete -- "$line" 2>/dev/null)
  if [[ \${COMPREPLY[0]-} == :directories ]]; then
    compopt -o filenames
    mapfile -t COMPREPLY < <(compgen -d -- "\${word#"$cut"}")
    return
  fi
  COMPREPLY=("\${COMPREPLY[@]%%$'\\t'*}")
  COMPREPLY=("\${COMPREPLY[@]#"$cut"}")
}
complete -F _nodelet nodelet
`;

const zsh = `#compdef nodelet
_nodelet() {
  local -a found described
  local line="\${(j: :)words[1,CURRENT]}" each
  found=("\${(@f)$("\${words[1]}" __complete -- "$line" 2>/dev/null)}")
  if [[ "\${found[1]}" == :directories ]]; then
    compset -P '--*='
    _files -/
    return
  fi
  for each in "\${found[@]}"; do
    [[ "$each" == *$'\\t'* ]] && described+=("\${\${each%%$'\\t'*}//:/\\\\:}:\${each#*$'\\t'}")
    [[ -n "$each" && "$each" != *$'\\t'* ]] && described+=("\${each//:/\\\\:}")
  done
  (( \${#described} )) && _describe -t nodelet nodelet described
}
if [[ "$funcstack[1]" == _nodelet ]]; then _nodelet; else compdef _nodelet nodelet; fi
`;

export const completionScripts: ReadonlyMap<string, string> = new Map([
  ["bash", bash],
  ["zsh", zsh],
]);
