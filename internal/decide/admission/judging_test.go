package admission

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fairqueue"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestLongTextsAreJudgedInTurn: while an owner's long text is judged its next one waits, and
// neither its short ones do nor anybody else's long ones. A caller that leaves while it waits is on
// record, as is what finds too many waiting. Past a number none waits.
func TestLongTextsAreJudgedInTurn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, Limits{})
	for sandbox, token := range map[string]string{"ann-1": "tk_ann", "ann-2": "tk_ann", "bob": "tk_bob"} {
		run := h.run()
		run.Sandbox, run.Token = sandbox, token
		must(t, h.Register(run))
	}
	long := "# " + strings.Repeat("x", mostUnqueued)
	ways := map[string]func(ctx context.Context, sandbox, text string) error{
		"a cell": func(ctx context.Context, sandbox, text string) error {
			_, err := h.Cell(ctx, sandbox, "c", "python", text)
			return err
		},
		"a command": func(ctx context.Context, sandbox, text string) error {
			_, err := h.Command(ctx, sandbox, "c", []string{"python3", "-c", text})
			return err
		},
		"a call": func(ctx context.Context, sandbox, text string) error {
			_, err := h.CodeBegins(ctx, Code{ID: sandbox, Language: "javascript", Isolation: "wasm", Text: text})
			return err
		},
	}
	ann, err := h.tenants.getTenant("ann-1")
	must(t, err)
	_, leave, err := ann.judging.long.Take(fairqueue.For(t.Context(), "tk_ann"))
	must(t, err)
	for way, ask := range ways {
		must(t, ask(t.Context(), "ann-1", "# short"))
		must(t, ask(t.Context(), "bob", long))
		before := len(h.records(t))
		gone, cancel := context.WithCancel(t.Context())
		waits := make(chan error)
		go func() { waits <- ask(gone, "ann-2", long) }()
		select {
		case err := <-waits:
			t.Errorf("%s does not wait: %v", way, err)
			cancel()
			continue
		default:
		}
		cancel()
		err := <-waits
		left := h.records(t)[before:]
		if !errors.Is(err, context.Canceled) || len(left) != 1 || left[0].Outcome != audit.Blocked || left[0].Rule != ruleUnjudged || left[0].Sandbox != "ann-2" || len(left[0].Command) == 0 {
			t.Errorf("%s that nobody waits for: %v, on record is %+v", way, err, left)
		}
	}
	left, cancel := context.WithCancel(t.Context())
	defer cancel()
	ended := make(chan error, 2*mostQueued)
	for range 2 * mostQueued {
		go func() { ended <- ways["a cell"](left, "ann-1", long) }()
	}
	ofOne := ann.judging.long.Limits().LineOfOne()
	for range 2*mostQueued - ofOne {
		if err := <-ended; !errors.Is(err, fault.ErrExhausted) {
			t.Errorf("past the line: %v", err)
		}
	}
	another := make(chan error)
	go func() { another <- ways["a cell"](left, "ann-2", long) }()
	leave()
	must(t, <-another) // the line of one sandbox is not that of the owner's others
	for range ofOne {  // the control: all others have their turn
		must(t, <-ended)
	}
}
