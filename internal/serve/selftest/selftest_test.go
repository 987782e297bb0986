package selftest

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission"
	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/provenance"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval/approvaltest"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/checkpoint"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/export"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"
)

// rehearsal is the drill without a sandbox: the real door, queue and log, asked as
// a gateway and a sandbox would ask them.
type rehearsal struct {
	tb    testing.TB
	dir   string
	log   *audit.FileLog
	queue *approval.Queue
	door  *admission.Controller
	// silent is the role of the package that the gateway serves without a word.
	silent string
	disk   []channel.InstalledPackage
}

func rehearse(tb testing.TB) *rehearsal {
	tb.Helper()
	r := &rehearsal{tb: tb, dir: tb.TempDir()}
	var err error
	if r.log, err = audit.Open(r.dir, audit.Options{}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { r.log.Close() })
	if r.queue, err = approval.Open(tb.Context(), approval.Config{Store: approvaltest.NewMemory(), Log: r.log}); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(r.queue.Close)
	r.door = admission.New(admission.Config{Log: r.log, Approvals: r.queue, Clients: all.Asked})
	return r
}

func (r *rehearsal) endDaemon(context.Context) error { return r.log.Close() }

func (r *rehearsal) wiring() Wiring {
	records := func(ctx context.Context) ([]audit.Record, error) {
		var all []audit.Record
		for record, err := range r.log.Records(ctx, audit.Filter{}) {
			if err != nil {
				return all, err
			}
			all = append(all, record)
		}
		return all, nil
	}
	return Wiring{
		Clock: time.Now, Records: records,
		Export: func(ctx context.Context) ([]byte, error) {
			all, err := records(ctx)
			var out bytes.Buffer
			for _, record := range all {
				line, lineErr := export.Line(export.JSONL, record)
				err = errors.Join(err, lineErr)
				out.Write(line)
			}
			return out.Bytes(), err
		},
		Verify: func(ctx context.Context) (audit.Verdict, error) {
			return audit.Verify(ctx, r.dir, audit.VerifyOptions{})
		},
		Prove: func(record uint64) (audit.Proof, error) { return audit.Prove(r.dir, record) },
		Keys:  func() (checkpoint.Keyring, error) { return publicKeys(r.dir) },
	}
}

func (r *rehearsal) playDrill(ctx context.Context, e *Evidence) error {
	p, err := policy.Parse("selftest", []byte(document))
	if err != nil {
		return err
	}
	sum := sha256.Sum256([]byte(document))
	e.Run, e.Sandbox, e.Task, e.User, e.Policy = "selftest", "sb1", task, "ann", "sha256:"+hex.EncodeToString(sum[:])
	if err := r.door.Register(admission.Run{Sandbox: e.Sandbox, Run: e.Run, Task: e.Task, User: e.User, Policy: p}); err != nil {
		return err
	}
	if err := r.door.SandboxStarted(ctx, e.Sandbox); err != nil {
		return err
	}
	for i, step := range drillPlan() {
		id := "c" + string(rune('0'+i))
		if _, err := r.door.Command(ctx, e.Sandbox, id, step.argv); err != nil {
			return err
		}
		c := Command{Argv: step.argv, Output: "allowed held\n"}
		if i < len(drillPlan())-1 {
			role := strings.TrimPrefix(strings.TrimSuffix(step.argv[len(step.argv)-1], "=="+version), "selftest-")
			if c.Exit, c.Output, err = r.install(ctx, e, role); err != nil {
				return err
			}
		}
		e.Commands = append(e.Commands, c)
		disk := provenance.Disk{Found: channel.Inventory{Packages: r.disk}}
		if _, err := r.door.Installed(ctx, e.Sandbox, disk); err != nil {
			return err
		}
		if err := r.door.CommandFinished(ctx, e.Sandbox, id, channel.Exit{Code: c.Exit}); err != nil {
			return err
		}
		if i == approveAfter {
			verdict := approval.Verdict{IDs: []string{e.Request}, State: approval.Approved, Scope: approval.ScopeRun}
			if _, err := approvaltest.AnswerShown(ctx, r.queue, "ann", verdict); err != nil {
				return err
			}
		}
	}
	return r.door.SandboxEnded(ctx, e.Sandbox, "destroyed")
}

// install is what the gateway asks for a file, and what is on the disk after it.
func (r *rehearsal) install(ctx context.Context, e *Evidence, role string) (exit int, output string, err error) {
	p := e.Releases[role]
	if role != refused {
		p.Sent++
	}
	answer := door.Answer{Decision: policy.Decision{Effect: policy.Allow}}
	if role != r.silent {
		ask := door.FileAsk{
			Sandbox: e.Sandbox, Package: pkgref.Ref{Ecosystem: pkgref.Python, Name: p.Name, Version: version},
			File:     door.File{Name: p.File, Version: version, Kind: policy.KindWheel, Digest: "sha256:" + p.SHA256, Published: time.Now().AddDate(-1, 0, 0)},
			Upstream: "http://" + registryHost + "/simple/", SourceURL: p.URL,
		}
		bytes := door.Bytes{SHA256: p.SHA256, Size: int64(len(p.Bytes))}
		answer, err = r.door.Await(ctx, door.AwaitAsk{FileAsk: ask, Bytes: bytes})
		if err == nil && answer.Decision.Allowed() {
			answer, err = r.door.Serve(ctx, door.ServeAsk{FileAsk: ask, Bytes: bytes})
		}
		if err == nil && answer.Decision.Allowed() {
			err = r.door.Sent(ctx, e.Sandbox, answer.Seq)
		}
		if err != nil {
			return 0, "", err
		}
	}
	if !answer.Decision.Allowed() {
		if answer.Approval != "" {
			e.Request = answer.Approval
		}
		return 1, "403 " + answer.Decision.Reason + " " + answer.Approval, nil
	}
	r.disk = append(r.disk, channel.InstalledPackage{Ecosystem: "python", Name: p.Name, Version: version, Path: "/site/" + p.Name})
	return 0, "", nil
}

// broken are the names of the links that don't hold.
func broken(report Report) []string {
	var names []string
	for _, l := range report.Links {
		if !l.Holds {
			names = append(names, l.Name)
		}
	}
	return names
}

func TestARehearsalHolds(t *testing.T) {
	r := rehearse(t)
	report, err := runDrill(t.Context(), r, r.wiring())
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range report.Links {
		if !l.Holds {
			t.Errorf("%s: %s", l.Name, l.Detail)
		}
	}
	if !report.Sound || report.Records < 15 {
		t.Errorf("%+v", report)
	}
}

// TestADroppedRecord: whichever record the log loses, a link breaks.
func TestADroppedRecord(t *testing.T) {
	whole := rehearse(t)
	e, err := evidence(t, whole)
	if err != nil {
		t.Fatal(err)
	}
	for lost := -1; lost < len(e.Records); lost++ {
		got := *e
		got.Records = slices.Clone(e.Records)
		if lost >= 0 {
			got.Records = slices.Delete(got.Records, lost, lost+1)
		}
		got.Export, got.Proofs, got.Verdict.Records = nil, len(got.Records), uint64(len(got.Records))
		for i := range got.Records {
			got.Records[i].Seq = uint64(i) // as by somebody who hides it
			line, err := export.Line(export.JSONL, got.Records[i])
			if err != nil {
				t.Fatal(err)
			}
			got.Export = append(got.Export, line...)
		}
		holds := true
		for _, l := range judgeLinks(&got) {
			holds = holds && l.Holds
		}
		if holds != (lost < 0) {
			t.Errorf("without record %d every link holds is %t", lost, holds)
		}
	}
}

// evidence plays a rehearsal and gives all of it.
func evidence(t *testing.T, r *rehearsal) (*Evidence, error) {
	t.Helper()
	w := r.wiring()
	e := &Evidence{Releases: releases(), Began: w.Clock()}
	if err := r.playDrill(t.Context(), e); err != nil {
		return nil, err
	}
	e.Ended = w.Clock()
	var err error
	if e.Records, err = w.Records(t.Context()); err != nil {
		return nil, err
	}
	if err := r.endDaemon(t.Context()); err != nil {
		return nil, err
	}
	e.Verdict, e.VerifyErr = w.Verify(t.Context())
	return e, nil
}

// TestAChangedField: each field of an install record is looked at.
func TestAChangedField(t *testing.T) {
	r := rehearse(t)
	e, err := evidence(t, r)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*audit.Record){
		"timestamp":           func(r *audit.Record) { r.Time = time.Time{} },
		"agent_run_id":        func(r *audit.Record) { r.Run = "other" },
		"package_name":        func(r *audit.Record) { r.Package = "other" },
		"requested_version":   func(r *audit.Record) { r.RequestedVersion = "" },
		"installed_version":   func(r *audit.Record) { r.InstalledVersion = "2.0" },
		"source_url":          func(r *audit.Record) { r.SourceURL += "x" },
		"package_hash_sha256": func(r *audit.Record) { r.SHA256 = strings.Repeat("0", 64) },
		"resolved_by":         func(r *audit.Record) { r.ResolvedBy = "default" },
		"outcome":             func(r *audit.Record) { r.Outcome = audit.Blocked },
		"sandbox":             func(r *audit.Record) { r.Sandbox = "" },
		"policy_digest":       func(r *audit.Record) { r.Policy = "" },
		"request_id":          func(r *audit.Record) { r.RequestID = "" },
		"file":                func(r *audit.Record) { r.File = "" },
		"size":                func(r *audit.Record) { r.Size++ },
		"guest_claimed":       func(r *audit.Record) { r.GuestClaimed = !r.GuestClaimed },
	} {
		for i, record := range e.Records {
			if record.Kind != audit.KindPackage || record.Outcome != audit.Served && record.Outcome != audit.Installed {
				continue
			}
			got := *e
			got.Records = slices.Clone(e.Records)
			change(&got.Records[i])
			_, served := servedOnRecord(&got)
			_, disk := diskOnRecord(&got)
			if served == nil && disk == nil {
				t.Errorf("record %d (%s) with another %s: both links hold", record.Seq, record.Outcome, name)
			}
		}
	}
}

// TestBrokenLinks: each break is found, and named.
func TestBrokenLinks(t *testing.T) {
	for what, c := range map[string]struct {
		silent string
		tamper func(r *rehearsal, w *Wiring)
		want   string
	}{
		"a gateway that serves without a record": {silent: allowed, want: "what was served was recorded before"},
		"a gateway that serves what waits":       {silent: held, want: "clients are answered as the policy says"},
		"a wrong clock": {tamper: func(_ *rehearsal, w *Wiring) {
			w.Clock = func() time.Time { return time.Now().Add(time.Hour) }
		}, want: "the clock is right"},
		"a record that readers don't get": {tamper: func(_ *rehearsal, w *Wiring) {
			read := w.Records
			w.Records = func(ctx context.Context) ([]audit.Record, error) {
				all, err := read(ctx)
				return slices.Delete(all, 5, 6), err
			}
		}, want: "the log can be read"},
		"an exporter that drops its last line": {tamper: func(_ *rehearsal, w *Wiring) {
			write := w.Export
			w.Export = func(ctx context.Context) ([]byte, error) {
				out, err := write(ctx)
				return out[:bytes.LastIndexByte(bytes.TrimSpace(out), '\n')+1], err
			}
		}, want: "the export has every record whole"},
		"an exporter that loses a field": {tamper: func(_ *rehearsal, w *Wiring) {
			write := w.Export
			w.Export = func(ctx context.Context) ([]byte, error) {
				out, err := write(ctx)
				return bytes.ReplaceAll(out, []byte(`"resolved_by":"allowlist"`), []byte(`"resolved_by":""`)), err
			}
		}, want: "the export has every record whole"},
		"an exporter that fails": {tamper: func(_ *rehearsal, w *Wiring) {
			w.Export = func(context.Context) ([]byte, error) { return nil, errors.New("broken pipe") }
		}, want: "the export has every record whole"},
		"a tree that is not the log's": {tamper: func(_ *rehearsal, w *Wiring) {
			verify := w.Verify
			w.Verify = func(ctx context.Context) (audit.Verdict, error) {
				v, err := verify(ctx)
				v.Sound, v.Problems = false, []audit.Problem{{What: "record 3 is not what the checkpoint covers"}}
				return v, err
			}
		}, want: "the log verifies"},
		"a record after the last checkpoint": {tamper: func(_ *rehearsal, w *Wiring) {
			verify := w.Verify
			w.Verify = func(ctx context.Context) (audit.Verdict, error) {
				v, err := verify(ctx)
				v.Covered--
				return v, err
			}
		}, want: "the log verifies"},
		"a proof of another record": {tamper: func(r *rehearsal, w *Wiring) {
			w.Prove = func(record uint64) (audit.Proof, error) { return audit.Prove(r.dir, max(record, 1)-1) }
		}, want: "every record is proved"},
		"another key": {tamper: func(_ *rehearsal, w *Wiring) {
			w.Keys = func() (checkpoint.Keyring, error) {
				key, err := checkpoint.Generate("cofferdam.example/other")
				if err != nil {
					return checkpoint.Keyring{}, err
				}
				return checkpoint.NewKeyring(key.Public())
			}
		}, want: "every record is proved"},
	} {
		r := rehearse(t)
		r.silent = c.silent
		w := r.wiring()
		if c.tamper != nil {
			c.tamper(r, &w)
		}
		report, err := runDrill(t.Context(), r, w)
		if err != nil {
			if c.silent != held { // nothing waits then, so that nothing can be approved
				t.Errorf("%s: %v", what, err)
			}
			continue
		}
		if names := broken(report); report.Sound || !slices.Contains(names, c.want) || report.Broken != names[0] {
			t.Errorf("%s: the broken links are %q, and %q must be one", what, names, c.want)
		}
		if _, err := json.Marshal(report); err != nil {
			t.Error(err)
		}
	}
}
