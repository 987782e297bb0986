package e2b

import (
	"fmt"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox/suspend"
)

// A hold and the streams of this wire.
//
// A request of the sandbox that waits for a person for a while (on_hold: wait) ends
// nothing: keep-alives go on, and the request is answered or refused within the
// client's patience. A stream ends with failed_precondition, which both SDKs raise
// as a SandboxError with this message, when
//   - the sandbox is frozen or on its way there (on_hold: freeze), or should be and
//     can't;
//   - the client's own time for the stream is nearly over and something still waits:
//     the client would only see a timeout otherwise.
//
// The command lives on, its clock stands still; Connect re-attaches to it, and is
// refused with the same words while the sandbox is frozen.

const maxHoldsNamed = 5

// heldError is why a stream ends now; nil if it goes on.
func heldError(v suspend.View) error {
	if v.State == suspend.Freezing || v.State == suspend.Frozen || v.Note != "" {
		return waitsError(v)
	}
	return nil
}

// waitsError tells what a sandbox waits for; nil if for nothing.
func waitsError(v suspend.View) error {
	if sentence := heldSentence(v); sentence != "" {
		return &failure{Code: codePrecondition, Message: sentence}
	}
	return nil
}

// heldSentence names the requests and how to approve them; "": nothing waits.
func heldSentence(v suspend.View) string {
	if about := heldFor(v); about != "" {
		return about + "; its processes live on, and commands.connect follows them again when that is answered"
	}
	return ""
}

// heldFor is what the sandbox waits for; "": nothing.
func heldFor(v suspend.View) string {
	if len(v.Holds) == 0 {
		return ""
	}
	var about []string
	for _, h := range v.Holds[:min(len(v.Holds), maxHoldsNamed)] {
		about = append(about, fmt.Sprintf("request %s for %s (on the host: %s)", h.Approval, h.Subject(), door.ApproveCommand(h.Approval)))
	}
	if more := len(v.Holds) - maxHoldsNamed; more > 0 {
		about = append(about, fmt.Sprintf("%d more", more))
	}
	return "the sandbox waits for a person to approve " + strings.Join(about, ", ")
}
