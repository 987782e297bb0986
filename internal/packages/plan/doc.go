// Package plan finds installs in commands, and makes what a resolver chose into a plan:
// the tree of releases that the install would bring, with the policy's verdict on each.
//
// The result comes from a sandbox whose content may be hostile, and counts only as far as
// the gateway showed it in the same run: see admission.Controller.Plan.
package plan
