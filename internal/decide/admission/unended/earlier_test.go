package unended_test

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/unended"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
)

// writtenBefore makes the file one of the version before, which knew neither sandboxes nor commands that go
// on in a copy, and passed over what it did not know.
func writtenBefore(t *testing.T, path string) {
	t.Helper()
	file := openBefore(t, path)
	file.Open = slices.DeleteFunc(file.Open, func(b unended.Begin) bool { return b.Kind == audit.KindSandbox || b.Sandbox == "copy" })
	b, err := json.Marshal(file)
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))
}

// before is the file as the version before reads it.
type before struct {
	Next uint64          `json:"next"`
	Open []unended.Begin `json:"open"`
}

func openBefore(t *testing.T, path string) (file before) {
	t.Helper()
	b, err := os.ReadFile(path)
	must(t, err)
	must(t, json.Unmarshal(b, &file))
	return file
}

// damaged is a log whose first record can't be read.
type damaged struct{ *approvaltest.Log }

var errDamaged = errors.New("record 1 is damaged")

func (l damaged) Records(ctx context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	if f.FromSeq <= 1 {
		return func(yield func(audit.Record, error) bool) { yield(audit.Record{}, errDamaged) }
	}
	return l.Log.Records(ctx, f)
}

// TestAnUpgradeReadsTheLogLater: the start after an upgrade needs no record that the version before had
// read; it finds later which of them began what that version passed over, and leaves to it what it knew.
func TestAnUpgradeReadsTheLogLater(t *testing.T) {
	log, path := &approvaltest.Log{}, filepath.Join(t.TempDir(), "unended.json")
	add := func(r audit.Record) {
		t.Helper()
		_, err := log.Append(t.Context(), r)
		must(t, err)
	}
	sandbox := func(id string, o audit.Outcome) {
		t.Helper()
		add(audit.Record{Kind: audit.KindSandbox, Outcome: o, Run: "r", Sandbox: id})
	}
	sandbox("lost", audit.Started)
	sandbox("ended", audit.Started)
	sandbox("ends later", audit.Started)
	sandbox("ended", audit.Finished)
	add(audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Sandbox: "lost", Detail: map[string]string{"command_id": "its end is in a segment that was moved away"}})
	_, err := unended.Open(t.Context(), log, path)
	must(t, err)
	file := openBefore(t, path)
	file.Open = nil
	b, err := json.Marshal(file)
	must(t, err)
	must(t, os.WriteFile(path, b, 0o600))

	g, err := unended.Open(t.Context(), damaged{log}, path)
	if err != nil {
		t.Fatalf("a start after an upgrade reads what the version before has read: %v", err)
	}
	if err := g.ReadEarlier(t.Context()); !errors.Is(err, errDamaged) {
		t.Fatalf("INCONCLUSIVE: the log is not damaged: %v", err)
	}
	for range 2 { // also after one that came to nothing
		g, err = unended.Open(t.Context(), log, path)
		must(t, err)
	}
	sandbox("ends later", audit.Finished)
	must(t, g.ReadEarlier(t.Context()))
	var open []string
	must(t, g.EndAll(t.Context(), "the daemon ended", func(b unended.Begin) bool {
		open = append(open, b.Sandbox+b.Command())
		return true
	}))
	if !slices.Equal(open, []string{"lost"}) {
		t.Errorf("without an end are %q", open)
	}
	if g, err = unended.Open(t.Context(), damaged{log}, path); err != nil {
		t.Fatal(err)
	}
	if err := g.ReadEarlier(t.Context()); err != nil {
		t.Errorf("it is looked for again: %v", err)
	}
}

// TestOneMayGoBackToTheVersionBefore: in the file that version finds no sandbox, whose end it would put on
// record though it lives. A command is the control.
func TestOneMayGoBackToTheVersionBefore(t *testing.T) {
	log, path := &approvaltest.Log{}, filepath.Join(t.TempDir(), "unended.json")
	for _, kind := range []audit.Kind{audit.KindSandbox, audit.KindCommand} {
		_, err := log.Append(t.Context(), audit.Record{Kind: kind, Outcome: audit.Started, Sandbox: "lives", Detail: map[string]string{"command_id": "cmd-1"}})
		must(t, err)
	}
	for range 2 {
		_, err := unended.Open(t.Context(), log, path)
		must(t, err)
	}
	if open := openBefore(t, path).Open; len(open) != 1 || open[0].Kind != audit.KindCommand {
		t.Errorf("the version before reads %+v", open)
	}
	g, err := unended.Open(t.Context(), log, path)
	must(t, err)
	kinds := map[audit.Kind]int{}
	must(t, g.EndAll(t.Context(), "the daemon ended", func(b unended.Begin) bool { kinds[b.Kind]++; return false }))
	if kinds[audit.KindSandbox] != 1 || kinds[audit.KindCommand] != 1 {
		t.Errorf("this version reads %v", kinds)
	}
}
