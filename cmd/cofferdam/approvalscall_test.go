package main

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/evidence"
	"github.com/cofferdam-dev/cofferdam/internal/serve/ui"
)

// TestACallIsShownWhole: all of its arguments, with nothing that a terminal would obey, and
// what an approval would mean; and a list has its beginning.
func TestACallIsShownWhole(t *testing.T) {
	t.Parallel()
	arguments := "{\"cents\":1200,\"note\":\"\u202e\u0085" + strings.Repeat("x", 4_000) + "\",\"order\":\"7\",\"z\":\"the end\"}"
	r := approval.Request{
		ID: "ap-k3m7qx", State: approval.Pending, Kind: approval.KindCall, Asked: 2, Rule: "rules.refunds", Reason: "rule refunds has a person asked first",
		Call:     approval.Call{Tool: "refund", Source: approval.SourceHost, Definition: approval.DigestOf("refund"), Digest: approval.DigestOf(arguments), Arguments: arguments},
		Evidence: evidence.Evidence{Call: &evidence.Call{Description: "pays back", Approved: 1, Others: 3, Commands: []string{"python3 agent.py"}}},
	}
	var out bytes.Buffer
	if err := showRequest(&out, r, time.Now()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"refund", "pays back", `"cents": 1200`, `"order": "7"`, `"z": "the end"`, strings.Repeat("x", 4_000), strings.TrimPrefix(r.Call.Digest, "sha256:"),
		"1 time with these arguments, 3 times with others; denied 0 times", "python3 agent.py", "(scope once)", "cofferdam approvals approve ap-k3m7qx",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is not in:\n%s", want, out.String())
		}
	}
	if strings.ContainsAny(out.String(), "\x1b\u202e\u0085") {
		t.Errorf("a terminal would obey it: %q", out.String())
	}
	if line := ui.Printable(releaseText(r)); len(line) > maxRelease+60 || !strings.HasPrefix(line, `tool refund {"cents":1200`) {
		t.Errorf("%q", line)
	}
	if text := meaning(r, approval.ScopeRun, time.Hour); !strings.Contains(text, "as often as it likes") || !strings.Contains(text, "2 runs that asked") {
		t.Error(text)
	}
	gone := r
	gone.Call.Arguments = ""
	out.Reset()
	if err := showRequest(&out, gone, time.Now()); err != nil || !strings.Contains(out.String(), "erased") {
		t.Errorf("%v\n%s", err, out.String())
	}
	f := answerFlags{state: approval.Approved}
	if f.scopeFor(r) != approval.ScopeOnce || f.scopeFor(approval.Request{}) != approval.ScopeRun {
		t.Error("an answer's scope")
	}
	digests := map[string][]string{}
	noteShownDigests(digests, r)
	if !slices.Equal(digests[r.ID], r.Call.Bound()) {
		t.Errorf("it is bound to %v", digests)
	}
	if err := onlyReleases([]approval.Request{r}, "--lockfile"); err == nil {
		t.Error("a call is written into a lockfile")
	}
}
