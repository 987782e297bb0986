package egress_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp"
	"github.com/cofferdam-dev/cofferdam/internal/decide/dlp/secrets"
	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/requests"
	"github.com/cofferdam-dev/cofferdam/internal/network/egress/scanning"
)

// wiredDoor is told over the door's wire of what was refused and found, and keeps it.
type wiredDoor struct {
	door.Door // a client's end
	far       *farDoor
}

type farDoor struct {
	door.Door
	refused chan door.HostRefusal
	found   chan door.FoundAsk
	plan    dlp.Plan
}

func (d *farDoor) HostRefused(_ context.Context, h door.HostRefusal) (door.Answer, error) {
	d.refused <- h
	return door.Answer{}, nil
}

func (d *farDoor) Scans(context.Context, door.ScansAsk) (door.ScansAnswer, error) {
	return door.ScansAnswer{Plan: d.plan}, nil
}

func (d *farDoor) FoundInRequest(_ context.Context, ask door.FoundAsk) (door.FoundAnswer, error) {
	d.found <- ask
	return door.FoundAnswer{}, nil
}

// wired is such a door.
func wired(t *testing.T, plan dlp.Plan) wiredDoor {
	t.Helper()
	near, far := net.Pipe()
	d := &farDoor{refused: make(chan door.HostRefusal, 1), found: make(chan door.FoundAsk, 1), plan: plan}
	ctx, cancel := context.WithCancel(t.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = door.Serve(ctx, far, d) // it ends with the test
	}()
	client := door.NewClient(near)
	t.Cleanup(func() {
		_ = client.Close()
		cancel()
		<-served
	})
	return wiredDoor{client, d}
}

// unreadBodies are requests with a body that nobody can look into, by a word of the client's: its
// place in them is {}.
func unreadBodies(word string) map[string]worded {
	header := func(name, value string) worded {
		return worded{body: "{}", kind: "text/plain", header: map[string]string{name: value}}
	}
	return map[string]worded{
		"a coding":               header("Content-Encoding", word),
		"a message's coding":     header("Grpc-Encoding", word),
		"a charset":              {body: "{}", kind: "text/plain; charset=" + word},
		"an encoding of parts'":  header("Content-Transfer-Encoding", word),
		"a part's encoding":      {body: "--x\r\nContent-Transfer-Encoding: " + word + "\r\n\r\na\r\n--x--", kind: "multipart/mixed; boundary=x"},
		"a charset of a part's":  {body: "--x\r\nContent-Type: text/plain; charset=" + word + "\r\n\r\na\r\n--x--", kind: "multipart/mixed; boundary=x"},
		"a coding behind others": header("Content-Encoding", "gzip, "+word),
	}
}

// TestRefusalsComeOnRecordWhateverTheClientWrites: a request is refused for what nobody can read, and
// the refusal comes on record over the door's wire, which takes UTF-8 alone, whatever the client calls
// it. No part of a key among its words is left where it is cut: whoever keeps records masks whole ones. The control: a short word is on
// record as it is.
func TestRefusalsComeOnRecordWhateverTheClientWrites(t *testing.T) {
	const rules = "network_allowlist:\n  - { host: api.example, paths: [\"/good\"], deny_patterns: [\"secret-[0-9]+\"] }\n"
	const key = "glpat-" + "aB3dE6gH9kaB3dE6gH9k"
	for what, word := range map[string]string{
		"short": "x-none", "no UTF-8": "\xff\xfea", "a byte of Latin-1": "caf\xe9", "a cut letter": strings.Repeat("a", 39) + "\u00e9", "long": strings.Repeat("\u00e9", 300), "a key": key,
		"a key at the cut": strings.Repeat("a", 30) + "." + key, "a key at the later cut": strings.Repeat("a", 85) + "." + key,
	} {
		for where, w := range unreadBodies(word) {
			e := endUnder(t, rules, &seen{}, "api.example")
			if w.sends(t, e.client(t, false), &seen{}) {
				t.Errorf("%s, %s: it arrives", what, where)
			}
			e.door.mu.Lock()
			rejected := append([]string(nil), e.door.rejected...)
			e.door.mu.Unlock()
			if len(rejected) != 1 {
				t.Errorf("%s, %s: %d refusals", what, where, len(rejected))
				continue
			}
			d := wired(t, dlp.Plan{})
			if _, err := d.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb-1", Name: "api.example", Port: 443, Reason: rejected[0], Request: rejected[0]}); err != nil {
				t.Errorf("%s, %s: the refusal %q does not come on record: %v", what, where, rejected[0], err)
				continue
			}
			if told := <-d.far.refused; what == "short" && !strings.Contains(told.Reason, word) || strings.Contains(told.Reason, key[:9]) && !strings.Contains(told.Reason, key) {
				t.Errorf("%s, %s: on record is %q", what, where, told.Reason)
			}
		}
	}
}

// TestScanningTellsOfWhatItCanNotRead: a body that can't be looked into comes on record whatever the
// client calls it, and is refused with the reason.
func TestScanningTellsOfWhatItCanNotRead(t *testing.T) {
	set := dlp.NewSet(secrets.Rules()...)
	for what, word := range map[string]string{"short": "x-none", "no UTF-8": "\xff\xfea", "a cut letter": strings.Repeat("a", 39) + "\u00e9"} {
		for where, w := range unreadBodies(word) {
			d := wired(t, dlp.Plan{Secrets: dlp.Block})
			x, err := scanning.Exchanges{Door: d, Set: func() *dlp.Set { return set }}.Exchange(t.Context(), requests.Connection{Sandbox: "sb-1", Name: "api.example", Port: 443, TLS: true})
			if err != nil {
				t.Fatal(err)
			}
			r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, "https://api.example/good", strings.NewReader(w.body))
			if err != nil {
				t.Fatal(err)
			}
			r.Header.Set("Content-Type", w.kind)
			for name, value := range w.header {
				r.Header.Set(name, value)
			}
			refusal, is := errors.AsType[*requests.Refusal](x.Outgoing(r))
			if !is || refusal.Status != http.StatusUnsupportedMediaType || !refusal.Recorded {
				t.Errorf("%s, %s: refused with %+v", what, where, refusal)
				continue
			}
			if told := <-d.far.found; told.Unseen == "" || !told.Refused {
				t.Errorf("%s, %s: on record is %+v", what, where, told)
			}
		}
	}
}

// TestTheDoorIsToldWhatIsNoUTF8: whatever member of whatever message has bytes that are none, it
// is said with U+FFFD for them. The control: UTF-8 is said as it is.
func TestTheDoorIsToldWhatIsNoUTF8(t *testing.T) {
	for written, want := range map[string]string{"a\xffb": "a\ufffdb", "caf\xe9": "caf\ufffd", "caf\u00e9": "caf\u00e9"} {
		d := wired(t, dlp.Plan{})
		if _, err := d.HostRefused(t.Context(), door.HostRefusal{Sandbox: "sb-1", Name: "api.example", Reason: written, Request: written}); err != nil {
			t.Errorf("%q: %v", written, err)
		} else if told := <-d.far.refused; told.Reason != want || told.Request != want {
			t.Errorf("%q: on record is %+v", written, told)
		}
		if _, err := d.FoundInRequest(t.Context(), door.FoundAsk{HostPort: door.HostPort{Sandbox: "sb-1"}, Where: written, Unseen: written}); err != nil {
			t.Errorf("%q: %v", written, err)
		} else if told := <-d.far.found; told.Where != want || told.Unseen != want {
			t.Errorf("%q: on record is %+v", written, told)
		}
	}
}
