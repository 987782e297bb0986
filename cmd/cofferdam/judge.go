package main

import (
	"errors"

	"github.com/cofferdam-dev/cofferdam/api"
)

// errKilled is what is known without asking the daemon why.
var errKilled = errors.New("the command was killed (SIGKILL)")

// saidBy begins a sentence that is not ours.
func saidBy(exit api.Exit) string {
	if exit.Claimed {
		return "the sandbox says: "
	}
	return ""
}

// judgeExit turns a command's end into our own: nil for code 0, else an error with
// the exit code, which has a sentence only where the command could not say it
// itself.
func judgeExit(exit api.Exit) error {
	code := exit.Code
	if code < 0 || code > exitBeyondShell {
		code = exitBeyondShell
	}
	switch {
	case exit.TimedOut && exit.Error != "": // which says whether it has ended
		return &exitError{code: exitTimeout, err: errors.New("the command's time limit was over (--timeout, or timeout_seconds in the policy): " + saidBy(exit) + exit.Error)}
	case exit.TimedOut:
		return &exitError{code: exitTimeout, err: errors.New("the command was ended: its time limit was over (--timeout, or timeout_seconds in the policy)")}
	case exit.Error != "":
		if code == 0 {
			code = exitOurs
		}
		return &exitError{code: code, err: errors.New(saidBy(exit) + exit.Error)}
	case code == exitKilled && exit.Signal == "KILL":
		return &exitError{code: code, err: errKilled}
	case code != 0:
		return &exitError{code: code}
	}
	return nil
}
