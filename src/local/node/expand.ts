/**
 * kubelet's expansion of `$(NAME)` in commands, arguments and values of variables.
 */

/**
 * `$(NAME)` becomes the variable's value, `$$` becomes `$`; everything else, an unknown name included, stays as it is.
 * What has been put in is not looked at again.
 */
export function expand(text: string, value: (name: string) => string | undefined): string {
  return text.replace(/\$(?:\$|\(([^)]*)\))/g, (reference, name: string | undefined) =>
    name === undefined ? "$" : (value(name) ?? reference),
  );
}
