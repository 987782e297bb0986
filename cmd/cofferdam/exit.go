package main

import (
	"errors"

	"github.com/spf13/cobra"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The exit codes that are ours. Everything else that `run` returns is the
// command's own.
const (
	exitFailure     = 1   // of every command but run; as fault.Kinds has it
	exitUsage       = 2   // bad input; nothing was made; as fault.Kinds has it
	exitDetached    = 75  // run, attach: the run goes on without us, see attach
	exitUnaccounted = 77  // run: the policy ended it for a package that was never served
	exitTimeout     = 124 // the command's time limit was over
	exitOurs        = 125 // run: Cofferdam itself failed
	exitNotFound    = 127 // run, exec: the command is not in the sandbox; a shell's code, too
	exitRefused     = 126 // run: the policy's rules refuse the command, or it can't be executed
	exitSignalBase  = 128 // run: plus the signal's number
	exitKilled      = 137 // 128 + SIGKILL
	exitPipe        = 141 // 128 + SIGPIPE
	exitDenied      = 1   // policy explain
	exitHeld        = 3   // policy explain
	exitBeyondShell = 255 // a code that no process can have
)

// exitError is an error with an exit code. With a nil err there is nothing to
// say: everything was said.
type exitError struct {
	code int
	err  error
	said bool // it stands on stderr already
}

func (e *exitError) Error() string {
	if e.err == nil {
		return ""
	}
	return e.err.Error()
}

func (e *exitError) Unwrap() error { return e.err }

// exitCode maps an error to the process's exit code.
func exitCode(err error) int {
	if e, ok := errors.AsType[*exitError](err); ok {
		return e.code
	}
	if _, ok := errors.AsType[*client.TextError](err); ok {
		return exitUsage
	}
	if status := client.StatusOf(err); status != 0 {
		return fault.KindAnswered(status).Exit
	}
	return fault.KindOf(err).Exit
}

// exitCodesTopic is `cofferdam help exit-codes`.
func exitCodesTopic() *cobra.Command {
	return &cobra.Command{
		Use:   "exit-codes",
		Short: "What the exit codes mean",
		Long: `cofferdam run, exec and shell exit with the code of the command that they ran.
These are their own:

  2        bad input: a wrong flag, an unreadable or wrong policy, an unknown
           template or engine, a mount that can't be; nothing was made
  75       the run waits for an approval and was left (Ctrl-C then, or
           --detach-on-hold); cofferdam attach goes back to it
  77       the policy ended the run, because a package is on the disk that was
           never served (packages.unaccounted: end)
  124      the command ran out of time (--timeout, or timeout_seconds)
  125      Cofferdam itself failed: no daemon came up, or the sandbox was lost
  126      the policy's rules refuse the command, or it can't be executed
  127      the command is not in the sandbox
  128+n    the command ended by signal n: 130 after Ctrl-C, 143 after SIGTERM,
           141 when nobody reads the output any more
  137      the command was killed; a sentence says so where the sandbox is out of memory

cofferdam call exits with 1 if the code failed, and with 2, 124, 125 and 126 as run does.

cofferdam policy explain exits with 0 for allow, 1 for deny, 3 for hold.

cofferdam plan exits with 0 if the install would go through, 3 if something would
wait for a person or be refused, 1 if no plan could be made or it has errors, and
with 2 and 126 as run does.

cofferdam approvals approve exits with 1 if the person at the terminal says no, or
a request is answered already or has changed since it was shown.

cofferdam advisory check exits with 1 for malware, 3 for a name close to a popular
one, and with 0 otherwise, whatever vulnerabilities it lists.

cofferdam doctor exits with 0 if sandboxes can run here, and with 1 otherwise.

Every other command exits with 0, with 2 for bad input (such as a name that does
not exist), and with 1 for any other failure. Errors are one sentence on stderr:
what, where, what to do.`,
	}
}
