// Package plan turns an install command into one that only resolves, and what
// that says into a plan: the tree of releases that the install would bring,
// with the policy's verdict on each.
//
// Vocabulary: a *client* is the program that resolves (pip, uv, npm, pnpm, go);
// a *rewrite* is a client's command that resolves in a scratch copy of the
// project, installs nothing and puts its *result* (a report or a lockfile) on
// its standard output, in *frames*; a *choice* is a release of the result; a
// *lockfile* is the result in the form in which the client reads it again.
//
// The result comes from a sandbox whose content may be hostile. It is read with
// limits and strictly, and whatever it says counts only as far as the gateway
// showed it in the same run: see admission.Controller.Plan.
package plan
