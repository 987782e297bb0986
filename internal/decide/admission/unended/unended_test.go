package unended_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// kind is one kind of thing that begins, and how it ends by itself.
type kind struct {
	name  string
	begin func(i int) audit.Record
	end   func(began audit.Record) audit.Record
}

func kinds() []kind {
	numbered := func(r audit.Record) audit.Record {
		r.Outcome = audit.Finished
		r.Detail = map[string]string{"began_seq": strconv.FormatUint(r.Seq, 10), "name": r.Detail["name"]}
		r.Seq = 0
		return r
	}
	named := func(r audit.Record) audit.Record {
		r.Outcome, r.Seq = audit.Finished, 0
		return r
	}
	return []kind{
		{"connection", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindNetwork, Outcome: audit.Started, Run: "r", Sandbox: "sb", RequestID: fmt.Sprint("n", i), Detail: map[string]string{"name": "api.example", "port": "443"}}
		}, numbered},
		{"call of a tool", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindTool, Outcome: audit.Started, Run: "r", Sandbox: "sb", RequestID: fmt.Sprint("t", i), Detail: map[string]string{"tool": "x"}}
		}, numbered},
		{"command", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Run: "r", Sandbox: "sb", Command: []string{"sleep"}, Detail: map[string]string{"command_id": fmt.Sprint("cmd-", i)}}
		}, named},
		{"command in a copy", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindCommand, Outcome: audit.Restored, Run: "r", Sandbox: "copy", Command: []string{"sleep"}, Detail: map[string]string{"command_id": fmt.Sprint("cmd-", i), "copy_of": "source"}}
		}, named},
		{"cell", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Run: "r", Sandbox: "sb", Command: []string{"python"}, Detail: map[string]string{"command_id": fmt.Sprint("cell-", i)}}
		}, named},
		{"call", func(i int) audit.Record {
			id := fmt.Sprint("call-", i)
			return audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Run: "r", Sandbox: id, Detail: map[string]string{"command_id": id}}
		}, named},
		{"file", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindFile, Outcome: audit.Started, Run: "r", Sandbox: "sb", File: fmt.Sprint("f", i), Detail: map[string]string{"operation": "write", "direction": "in"}}
		}, numbered},
		{"file that breaks off", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindFile, Outcome: audit.Started, Run: "r", Sandbox: "sb", File: fmt.Sprint("f", i), Detail: map[string]string{"operation": "read", "direction": "out"}}
		}, func(r audit.Record) audit.Record {
			r = numbered(r)
			r.Outcome = audit.Aborted
			return r
		}},
		{"sandbox", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r", Sandbox: fmt.Sprint("sb-", i), User: "ann"}
		}, named},
		{"build", func(i int) audit.Record {
			return audit.Record{Kind: audit.KindBuild, Outcome: audit.Started, Detail: map[string]string{"build": fmt.Sprint("b-", i), "event": "begun"}}
		}, named},
	}
}

// others are records that neither begin nor end what their likes do.
func others(began audit.Record) []audit.Record {
	return []audit.Record{
		{Kind: audit.KindNetwork, Outcome: audit.Finished, Sandbox: "sb", Detail: map[string]string{"request": "GET /", "began_seq": strconv.FormatUint(began.Seq, 10)}},
		{Kind: audit.KindNetwork, Outcome: audit.Blocked, Sandbox: "sb", Detail: map[string]string{"name": "evil.example"}},
		{Kind: audit.KindCommand, Outcome: audit.Finished, Sandbox: "another", Detail: began.Detail},
		{Kind: audit.KindBuild, Outcome: audit.Started, Detail: map[string]string{"build": began.Detail["build"], "event": "step"}},
		{Kind: audit.KindSandbox, Outcome: audit.Frozen, Sandbox: began.Sandbox},
		{Kind: audit.KindSandbox, Outcome: audit.Failed, Sandbox: began.Sandbox, Detail: map[string]string{"event": "step"}}, // to freeze
	}
}

// TestEveryBeginHasAnEnd: of each kind as many ends as begins, wherever the daemon died: before
// what it knew was written down, after it, in the middle of the sweep, with the file lost,
// spoilt, or of a version that knew fewer kinds. A begin that is still followed has none, and nothing has two.
func TestEveryBeginHasAnEnd(t *testing.T) {
	for _, k := range kinds() {
		for _, death := range []string{"after the start", "without the file", "with a spoilt file", "with an old file", "with an earlier version's file", "in the sweep"} {
			t.Run(k.name+" "+death, func(t *testing.T) {
				log := &failing{Log: &approvaltest.Log{}, after: -1}
				path := filepath.Join(t.TempDir(), "unended.json")
				_, err := unended.Open(t.Context(), log, path)
				must(t, err)
				for i := range openings {
					began, err := log.Append(t.Context(), k.begin(i))
					must(t, err)
					for _, r := range others(began) {
						_, err := log.Append(t.Context(), r)
						must(t, err)
					}
					if i%2 == 0 {
						_, err = log.Append(t.Context(), k.end(began))
						must(t, err)
					}
					if i == openings/2 && death == "with an old file" {
						_, err := unended.Open(t.Context(), log, path)
						must(t, err)
					}
				}
				switch death {
				case "without the file":
					must(t, os.Remove(path))
				case "with an earlier version's file":
					_, err := unended.Open(t.Context(), log, path)
					must(t, err)
					writtenBefore(t, path)
				case "with a spoilt file":
					must(t, os.WriteFile(path, []byte(`{"next": 5, "open": [`), 0o600))
				}
				g, err := unended.Open(t.Context(), log, path)
				must(t, err)
				first := g.Next()
				_, err = log.Append(t.Context(), k.begin(openings)) // the next daemon's own
				must(t, err)
				must(t, g.ReadEarlier(t.Context()))
				earlier := func(b unended.Begin) bool { return b.Seq < first }
				if death == "in the sweep" {
					log.after = 3
					if err := g.EndAll(t.Context(), "the daemon ended", earlier); !errors.Is(err, errFull) {
						t.Error(err)
					}
					log.after = -1
					g, err = unended.Open(t.Context(), log, path)
					must(t, err)
				}
				for range 2 {
					must(t, g.EndAll(t.Context(), "the daemon ended", earlier))
				}
				begins, ends := 0, map[string]int{}
				for _, r := range log.All() {
					if r.Kind != k.begin(0).Kind || r.Detail["request"] != "" || r.Sandbox == "another" || r.Detail["event"] == "step" {
						continue
					}
					switch r.Outcome { //nolint:exhaustive // the others are neither
					case audit.Started, audit.Restored:
						begins++
					case audit.Finished, audit.Failed, audit.Aborted:
						of := r.Detail["began_seq"] + r.Detail["command_id"] + r.Detail["build"]
						if r.Kind == audit.KindSandbox {
							of = r.Sandbox
						}
						ends[of]++
					}
				}
				if begins != openings+1 || len(ends) != openings {
					t.Errorf("%d begins, %d ends", begins, len(ends))
				}
				for of, n := range ends {
					if n != 1 {
						t.Errorf("%s has %d ends", of, n)
					}
				}
			})
		}
	}
}

var errFull = errors.New("the disk is full")

// failing is a log that takes some more records, and then none; after -1: it takes all.
type failing struct {
	*approvaltest.Log
	after int
}

func (l *failing) Append(ctx context.Context, r audit.Record) (audit.Record, error) {
	if l.after == 0 {
		return r, errFull
	}
	if l.after > 0 {
		l.after--
	}
	return l.Log.Append(ctx, r)
}
