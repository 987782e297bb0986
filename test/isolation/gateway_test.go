package isolation

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/kit/safego"
)

// refusedNames is after how many slots sandboxes are renewed where each slot asks for a
// name that leads to nothing: one may ask for 50.
const refusedNames = 45

// heldRequests is the same where each slot has a request wait: one may have 200.
const heldRequests = 150

// toolPace is how long a slot takes where the receiver calls a tool: it may ten times a second.
const toolPace = 110 * time.Millisecond

// throughGateway are the channels that both try from inside of their sandboxes.
func throughGateway() []channel {
	return []channel{
		{
			name: "page cache", shares: "the page of a package that both may have", law: allowing, timing: 80,
			send:  sendPage("pagea"),
			look:  lookAtPage("pagea"),
			deeds: allRecords,
		},
		{
			name: "file cache", shares: "the file of a package that both may have", law: allowing, timing: 80,
			send:  sendFile("filea"),
			look:  lookAtFile("filea"),
			deeds: recordsOf("package", "served"),
		},
		{
			name: "held page", shares: "the page of a package that waits for a person at both", law: holding, timing: 80,
			send:  sendPage("helda"),
			look:  lookAtPage("helda"),
			deeds: allRecords,
		},
		{
			name: "denied name", shares: "the name of a package that neither may have", law: denying, timing: 10, renewed: refusedNames,
			send:  sendPage("denieda"),
			look:  lookAtPage("denieda"),
			deeds: allRecords,
		},
		{
			name: "missing name", shares: "a name that leads to nothing", law: allowing, timing: 10, renewed: refusedNames,
			send:  sendPage("missinga"),
			look:  lookAtPage("missinga"),
			deeds: allRecords,
		},
		{
			name: "refusals", shares: "error texts and the ids in them", law: denying, timing: 10,
			renewed: refusedNames,
			send:    sendPage("refuseda"),
			look:    func(_ context.Context, p *pair, _ int) (Observation, error) { return p.receiver.page("refusedb") },
			deeds:   allRecords,
		},
		{
			name: "approvals", shares: "the queue of requests: ids, groups, counters", law: holding, timing: 10,
			send: sendFile("askeda"),
			look: func(_ context.Context, p *pair, slot int) (Observation, error) {
				return lookAtOwnFile(p, nameOf("askedb", slot))
			},
			deeds: recordsOf("package", "pending_approval"), renewed: heldRequests,
		},
		{
			name: "names asked for", shares: "the resolver, by names that no list has", law: allowing, timing: 10,
			send: func(_ context.Context, p *pair, slot int) error {
				return second(p.sender.within(ask{Resolve: hostOf(slot)}))
			},
			look: func(_ context.Context, p *pair, slot int) (Observation, error) {
				return p.receiver.within(ask{Resolve: hostOf(slot)})
			},
			deeds: recordsOf("network", ""), renewed: refusedNames, answered: `no such host`,
		},
		{
			name: "listed host", shares: "connections, names and TLS of a host that both may reach", law: allowing, timing: 10,
			send: func(_ context.Context, p *pair, slot int) error {
				return second(p.sender.within(ask{Get: fmt.Sprintf("https://%s/%s", listedHost, nameOf("sent", slot)), Anew: true}))
			},
			look: func(_ context.Context, p *pair, slot int) (Observation, error) {
				return p.receiver.within(ask{Get: fmt.Sprintf("https://%s/%s", listedHost, nameOf("looked", slot)), Anew: true})
			},
			deeds: upstreamAsked("/sent"),
		},
		{
			name: "tools", shares: "a function of the host that both may call", law: allowing, timing: 60,
			beside: func(_ context.Context, p *pair, _ int) (func(), error) {
				return aside(func() error { return second(p.sender.within(ask{Run: []string{"cofferdam-tool", "echo", "{}"}})) }), nil
			},
			look: func(_ context.Context, p *pair, _ int) (Observation, error) {
				return p.receiver.within(ask{Run: []string{"cofferdam-tool", "echo", "{}"}})
			},
			deeds: recordsOf("tool", "started"), answered: `<nil>$`, least: toolPace,
		},
		{
			name: "processors", shares: "the host's two processors, which nothing keeps apart", law: allowing, timing: 100,
			beside: func(_ context.Context, p *pair, _ int) (func(), error) {
				return aside(func() error { return second(p.sender.within(ask{Spin: 60_000})) }), nil
			},
			look: func(_ context.Context, p *pair, _ int) (Observation, error) {
				return p.receiver.within(ask{Spin: 20_000})
			},
			deeds: spentTime, answered: `^$`,
		},
	}
}

// aside does something while the receiver looks; what it returns waits for its end.
func aside(do func() error) (stop func()) {
	done := make(chan error, 1)
	safego.Go(func() { done <- do() })
	return func() {
		select {
		case <-done:
		case <-time.After(longestWait):
		}
	}
}

func second[T any](_ T, err error) error { return err }

func sendPage(names string) func(context.Context, *pair, int) error {
	return func(_ context.Context, p *pair, slot int) error {
		return second(p.sender.page(nameOf(names, slot)))
	}
}

func lookAtPage(names string) func(context.Context, *pair, int) (Observation, error) {
	return func(_ context.Context, p *pair, slot int) (Observation, error) {
		return p.receiver.page(nameOf(names, slot))
	}
}

// sendFile asks for the page of a package and its file.
func sendFile(names string) func(context.Context, *pair, int) error {
	return func(_ context.Context, p *pair, slot int) error {
		return second(lookAtOwnFile(&pair{receiver: p.sender}, nameOf(names, slot)))
	}
}

// lookAtFile sees the file alone: the page is there for whoever asks second.
func lookAtFile(names string) func(context.Context, *pair, int) (Observation, error) {
	return func(_ context.Context, p *pair, slot int) (Observation, error) {
		return lookAtOwnFile(p, nameOf(names, slot))
	}
}

func lookAtOwnFile(p *pair, name string) (Observation, error) {
	if _, err := p.receiver.page(name); err != nil {
		return Observation{}, err
	}
	return p.receiver.file(name)
}

// recordsOf counts a sender's records in the log.
func recordsOf(kind, outcomes string) func(*testing.T, *pair) int {
	return func(t *testing.T, p *pair) int {
		t.Helper()
		return p.sender.records(t.Context(), t, kind, outcomes)
	}
}

func allRecords(t *testing.T, p *pair) int { t.Helper(); return recordsOf("", "")(t, p) }

// upstreamAsked counts what reached the listed host.
func upstreamAsked(below string) func(*testing.T, *pair) int {
	return func(_ *testing.T, p *pair) int { return p.sender.upstream.askedBelow(below) }
}

// leastSpin is the least time of a processor that a sender's work takes.
const leastSpin = 5 * time.Millisecond

// spentTime counts the work that a sender's sandbox did, by the host's count of its time.
func spentTime(t *testing.T, p *pair) int {
	t.Helper()
	used, err := p.sender.admin.Usage(t.Context(), p.sender.box.ID)
	if err != nil {
		t.Fatal(err)
	}
	return int(time.Duration(used.CPUNanos) / leastSpin)
}

// nameOf is a name of a slot's own.
func nameOf(names string, slot int) string {
	if slot < 0 { // before the first one
		return fmt.Sprint(names, "before", -slot)
	}
	return fmt.Sprint(names, slot)
}

func hostOf(slot int) string { return nameOf("name", slot) + ".unlisted.example" }
