package admission

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// TestRepeatsOutliveTheirSandbox: a sandbox that ends while the log takes some records and others not
// has all of its ends that can be written, and its repeats when the log takes them again, once.
func TestRepeatsOutliveTheirSandbox(t *testing.T) {
	c, log := hosted(t, nil)
	must(t, c.SandboxStarted(t.Context(), "sb1"))
	for range 7 {
		_, err := c.Name(t.Context(), door.NameAsk{Sandbox: "sb1", Name: "evil.example"})
		must(t, err)
	}
	a, err := c.Connect(t.Context(), connectTo("api.example", 443, "93.184.215.14"))
	must(t, err)
	if a.Decision.Effect != policy.Allow {
		t.Fatalf("%+v", a)
	}
	log.FailWhen(func(r audit.Record) error {
		if r.Count > 0 {
			return io.ErrShortWrite
		}
		return nil
	})
	if err := c.SandboxEnded(t.Context(), "sb1", "stopped"); !errors.Is(err, io.ErrShortWrite) {
		t.Fatalf("INCONCLUSIVE: %v", err)
	}
	c.Unregister("sb1")
	counted := func() (repeats, connections, ends int) {
		for _, r := range log.All() {
			switch {
			case r.Outcome == audit.Blocked:
				repeats += max(1, r.Count)
			case r.Outcome == audit.Finished && r.Kind == audit.KindNetwork:
				connections++
			case r.Outcome == audit.Finished && r.Kind == audit.KindSandbox:
				ends++
			}
		}
		return repeats, connections, ends
	}
	if repeats, connections, ends := counted(); repeats != 1 || connections != 1 || ends != 0 {
		t.Errorf("as it ends: %d refusals, %d ends of connections, %d of the sandbox", repeats, connections, ends)
	}
	log.FailWhen(nil)
	for range 2 {
		must(t, c.SandboxLost(t.Context(), "sb1", "stopped"))
	}
	if repeats, connections, ends := counted(); repeats != 7 || connections != 1 || ends != 1 {
		t.Errorf("afterwards: %d refusals, %d ends of connections, %d of the sandbox", repeats, connections, ends)
	}
}

// TestOverdueIsBounded: a book is kept once, and past the bound the log has how many were not.
func TestOverdueIsBounded(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	log.FailWhen(func(audit.Record) error { return io.ErrShortWrite })
	o := &overdue{log: log}
	const past = 5
	for i := range maxOverdue + past {
		b := records.NewBook(records.Config{Log: log, Sandbox: fmt.Sprint(i), Policy: func() string { return "" }, OnOwed: o.keepOwing, Limits: records.Limits{Records: 10}})
		for range 2 {
			_, err := b.Append(t.Context(), audit.Record{Kind: audit.KindTool, Outcome: audit.Finished, Detail: map[string]string{records.DetailBegan: fmt.Sprint(i)}})
			if !errors.Is(err, io.ErrShortWrite) {
				t.Fatal(err)
			}
			o.keepBook(b)
		}
		o.keepEnd(overdueEnd{sandbox: fmt.Sprint(i)})
		o.keepEnd(overdueEnd{sandbox: fmt.Sprint(i)})
	}
	if len(o.owing) != maxOverdue || len(o.books) != maxOverdue || len(o.ends) != maxOverdue {
		t.Errorf("%d, %d and %d are kept", len(o.owing), len(o.books), len(o.ends))
	}
	ended := 0
	end := func(context.Context, overdueEnd) error {
		ended++
		return nil
	}
	o.writeOverdue(t.Context(), end)
	if ended != 0 || len(log.All()) != 0 {
		t.Fatalf("INCONCLUSIVE: %d ends, %d records", ended, len(log.All()))
	}
	log.FailWhen(nil)
	for range 2 {
		o.writeOverdue(t.Context(), end)
	}
	calls, dropped := 0, 0
	for _, r := range log.All() {
		if r.Detail[records.DetailEvent] == records.EventDropped {
			dropped += r.Count
		} else {
			calls++
		}
	}
	if ended != maxOverdue || calls != 2*maxOverdue || dropped != 3*past {
		t.Errorf("%d ends of sandboxes and %d of calls are written, and %d things were not kept", ended, calls, dropped)
	}
}

// TestARecordThatNoLogTakes is counted, and keeps nothing else waiting.
func TestARecordThatNoLogTakes(t *testing.T) {
	t.Parallel()
	log := &approvaltest.Log{}
	log.FailWhen(func(r audit.Record) error {
		if r.Kind == audit.KindBuild && r.Reason == "bad" {
			return fault.New(fault.ErrInvalid, "a test")
		}
		return nil
	})
	o := overdue{log: log}
	o.keepRecord(audit.Record{Kind: audit.KindBuild, Outcome: audit.Failed, Reason: "bad"})
	o.keepRecord(audit.Record{Kind: audit.KindBuild, Outcome: audit.Failed, Reason: "good"})
	o.writeOverdue(t.Context(), func(context.Context, overdueEnd) error { return nil })
	if all := log.All(); len(all) != 2 || all[0].Reason != "good" || all[1].Count != 1 {
		t.Errorf("on record: %+v", all)
	}
}
