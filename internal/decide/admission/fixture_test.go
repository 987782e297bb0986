package admission

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/packages/installer/all"

	"go.uber.org/goleak"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/clock"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const document = `
version: "1"
packages: { default: deny, min_release_age: 7d }
allowed_packages:
  python:
    - { name: requests, version: ">=2.31,<2.33", with_dependencies: true }
    - { name: numpy, max_version: "1.x" }
blocked_packages: { python: [ { name: evil } ] }
rules:
  - { name: no-curl, condition: { field: command, operator: matches, value: "curl" }, action: deny, priority: 10 }
  - { name: no-eval, condition: { field: code, operator: contains, value: "eval" }, action: deny, priority: 5 }
defaults: { action: allow }
`

// house is a controller over a real log with one sandbox, "sb1" of run "run1".
type house struct {
	*Controller
	log    *audit.FileLog
	policy *policy.Policy
	cuts   chan string

	mu   sync.Mutex
	now  time.Time
	jump time.Duration // of the host's clock
}

func noon() time.Time { return time.Date(2026, 6, 1, 12, 0, 0, 0, time.UTC) }

func parse(tb testing.TB, text string) *policy.Policy {
	tb.Helper()
	p, err := policy.Parse("p.yaml", []byte(text))
	if err != nil {
		tb.Fatal(err)
	}
	return p
}

func newHouse(tb testing.TB, limits Limits) *house {
	tb.Helper()
	log, err := audit.Open(tb.TempDir(), audit.Options{})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { log.Close() })
	h := &house{log: log, policy: parse(tb, document), cuts: make(chan string, 10), now: noon()}
	h.Controller = New(Config{Clients: all.Asked, Log: log, Limits: limits, Clock: h, OnExceeded: func(s string) { h.cuts <- s }})
	if err := h.Register(h.run()); err != nil {
		tb.Fatal(err)
	}
	return h
}

func (h *house) run() Run {
	return Run{Sandbox: "sb1", Run: "run1", Task: "a task", User: "ann", Policy: h.policy}
}

// Read implements clock.Source.
func (h *house) Read() clock.Reading {
	h.mu.Lock()
	defer h.mu.Unlock()
	return clock.Reading{Now: h.now, Wall: h.now.Add(h.jump)}
}

// leap moves the host's clock alone, to so far off.
func (h *house) leap(jump time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.jump = jump
}

func (h *house) advance(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.now = h.now.Add(d)
}

func (h *house) records(tb testing.TB, outcomes ...audit.Outcome) []audit.Record {
	tb.Helper()
	var all []audit.Record
	for r, err := range h.log.Records(tb.Context(), audit.Filter{Outcomes: outcomes}) {
		if err != nil {
			tb.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

func python(name, version string) pkgref.Ref {
	return pkgref.Ref{Ecosystem: pkgref.Python, Name: name, Version: version}
}

func wheel(name, version string) door.File {
	return door.File{
		Name: fmt.Sprintf("%s-%s-py3-none-any.whl", name, version), Version: version, Kind: policy.KindWheel,
		Digest: "sha256:" + hexOf(name+version), Published: noon().AddDate(-1, 0, 0),
	}
}

// hexOf is a digest for the tests: 64 hex digits that follow from text.
func hexOf(text string) string {
	return (fmt.Sprintf("%x", text) + strings.Repeat("0", 64))[:64]
}

// fileAsk is what every question about a wheel tells of it; wheelBytes are its bytes.
func fileAsk(name, version string) door.FileAsk {
	return door.FileAsk{Sandbox: "sb1", Package: python(name, version), File: wheel(name, version), SourceURL: "https://files.example/" + name}
}

func wheelBytes(name, version string) door.Bytes {
	return door.Bytes{SHA256: hexOf(name + version), Size: 1000}
}

func judging(name, version string) door.JudgeAsk {
	return door.JudgeAsk{FileAsk: fileAsk(name, version)}
}

func previewing(name, version string) door.PreviewAsk {
	return door.PreviewAsk{FileAsk: fileAsk(name, version)}
}

func awaiting(name, version string) door.AwaitAsk {
	return door.AwaitAsk{FileAsk: fileAsk(name, version), Bytes: wheelBytes(name, version)}
}

func serving(name, version string) door.ServeAsk {
	return door.ServeAsk{FileAsk: fileAsk(name, version), Bytes: wheelBytes(name, version)}
}

func indexOf(name, digest string, files ...door.File) door.IndexAsk {
	return door.IndexAsk{Sandbox: "sb1", Package: python(name, ""), SourceURL: "https://index.example/" + name, IndexDigest: digest, Files: files}
}

func must(tb testing.TB, err error) {
	tb.Helper()
	if err != nil {
		tb.Fatal(err)
	}
}
