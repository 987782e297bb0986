package mcp

import (
	"context"
	"errors"
	"fmt"
	"net/http"

	"github.com/cofferdam-dev/cofferdam/client"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// The codes that errors of tools begin with.
const (
	codeInvalid        = "invalid_argument"
	codeUnknownSandbox = "unknown_sandbox"
	codeUnknownCommand = "unknown_command"
	codeNotFound       = "not_found"
	codeRefused        = "refused_by_policy"
	codePermission     = "permission_denied"
	codeConflict       = "wrong_state"
	codeTooLarge       = "too_large"
	codeTooMany        = "too_many"
	codeUnavailable    = "unavailable"
	codeCancelled      = "cancelled"
	codeInternal       = "internal"
)

// maxSentence bounds a sentence of an error, which may quote what a guest says.
const maxSentence = 2 << 10

// problem is an error of a tool: "CODE: what is wrong. What to do."
type problem struct {
	code, sentence, then string
}

func failure(code, sentence, then string) error { return &problem{code, sentence, then} }

// Error is what the client's model reads.
func (p *problem) Error() string {
	content := p.code + ": " + text.Shorten(ui.Printable(p.sentence), maxSentence) + "."
	if p.then != "" {
		content += " Next: " + p.then + "."
	}
	return content
}

// refusedThen is what to do after a refusal.
const refusedThen = "do not retry the same thing; call why_blocked for the rule, then request_approval or choose something that the policy allows (explain_policy)"

// missingThen is what to do where all that was refused is what a registry does not have, or did not give: no
// policy decides about that, and no person can approve it.
const missingThen = "it is the registry that has no such thing, does not give it, or did not answer: check the name and the version; no approval helps"

// permissionThen is what to do where a file may not be read or written: by the rights of the user inside, or, as the
// sentence says then, by the policy.
const permissionThen = "use another path, such as one in your home folder or in /tmp; where the sentence names the policy, why_blocked says more"

// alarmThen is what to do after an alarm.
const alarmThen = "there is an ALARM: what came is not what it must be, though the command may have ended well; do not use what it made, and tell your user at once"

// explained turns what went wrong into an error of a tool.
func explained(ctx context.Context, err error) error {
	if _, ok := errors.AsType[*problem](err); ok || err == nil {
		return err
	}
	sentence := err.Error()
	switch cause := context.Cause(ctx); {
	case errors.Is(cause, errClosing):
		return failure(codeUnavailable, "the daemon ends", "connect again in a moment")
	case ctx.Err() != nil:
		return failure(codeCancelled, "the call was cancelled", "")
	case errors.Is(err, client.ErrNoDaemon):
		return failure(codeUnavailable, sentence, "tell your user that the daemon is not there")
	case errors.Is(err, client.ErrLost):
		return failure(codeUnavailable, "the daemon was lost in mid-call, and what was asked for may have been done", "look at what is there (list_sandboxes), then call again")
	case errors.Is(err, fault.ErrInvalid):
		return failure(codeInvalid, sentence, "")
	case client.StatusOf(err) != 0:
		return answeredError(err, sentence)
	}
	return failure(codeInternal, sentence, "tell your user; the daemon's log says more")
}

// ofFile is an error of a call for a file: the daemon has one status for the policy and for the user's rights.
func ofFile(err error) error {
	if client.StatusOf(err) == http.StatusForbidden {
		return failure(codePermission, err.Error(), permissionThen)
	}
	return err
}

// answeredError is explained for a refusal of the daemon.
func answeredError(err error, sentence string) error {
	then := ""
	if e, ok := errors.AsType[*client.Error](err); ok && e.RetryAfter() > 0 {
		then = fmt.Sprintf("wait %d seconds, then call again", int(e.RetryAfter().Seconds()))
	}
	switch client.StatusOf(err) {
	case http.StatusBadRequest:
		return failure(codeInvalid, sentence, then)
	case http.StatusUnauthorized:
		return failure(codeRefused, sentence, "tell your user that the token of this server is not valid any more")
	case http.StatusForbidden:
		return failure(codeRefused, sentence, refusedThen)
	case http.StatusNotFound:
		return failure(codeNotFound, sentence, then)
	case http.StatusConflict:
		return failure(codeConflict, sentence, then)
	case http.StatusRequestEntityTooLarge:
		return failure(codeTooLarge, sentence, then)
	case http.StatusTooManyRequests:
		return failure(codeTooMany, sentence, then)
	case http.StatusServiceUnavailable:
		return failure(codeUnavailable, sentence, then)
	}
	return failure(codeInternal, sentence, "tell your user; the daemon's log says more")
}
