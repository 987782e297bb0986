package keyring_test

import (
	"bufio"
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/godbus/dbus/v5"

	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/keyring"
	"github.com/cofferdam-dev/cofferdam/internal/decide/secret/sourcetest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// desktop stands in for a session bus with a keyring behind it. It speaks the wire of both.
type desktop struct {
	address string

	mu      sync.Mutex // guards all below
	open    int        // items that a search finds, unlocked
	locked  int
	text    string
	refuses map[string]string // errors by member
	stalled bool
	asked   []string
}

func newDesktop(t *testing.T) *desktop {
	t.Helper()
	path := filepath.Join(t.TempDir(), "bus")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	d := &desktop{address: "unix:path=" + path, open: 1, text: "the-secret", refuses: map[string]string{}}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { d.serve(conn) })
		}
	})
	t.Cleanup(all.Wait)
	t.Cleanup(func() { _ = listener.Close() })
	return d
}

func (d *desktop) set(change func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	change()
}

// serve greets a client as buses do, and answers its calls until it has gone.
func (d *desktop) serve(conn net.Conn) {
	defer conn.Close()
	from := bufio.NewReader(conn)
	if zero, err := from.ReadByte(); err != nil || zero != 0 {
		return
	}
	for {
		line, err := from.ReadString('\n')
		if err != nil {
			return
		}
		answer := "ERROR"
		switch line = strings.TrimSpace(line); {
		case line == "BEGIN":
			d.answer(conn, from)
			return
		case line == "AUTH":
			answer = "REJECTED EXTERNAL"
		case strings.HasPrefix(line, "AUTH EXTERNAL"), strings.HasPrefix(line, "DATA"):
			answer = "OK 0123456789abcdef0123456789abcdef"
		}
		if _, err := io.WriteString(conn, answer+"\r\n"); err != nil {
			return
		}
	}
}

func (d *desktop) answer(conn net.Conn, from io.Reader) {
	for {
		call, err := dbus.DecodeMessage(from)
		if err != nil {
			return
		}
		reply := &dbus.Message{Type: dbus.TypeMethodReply, Headers: map[dbus.HeaderField]dbus.Variant{dbus.FieldReplySerial: dbus.MakeVariant(call.Serial())}}
		member, _ := call.Headers[dbus.FieldMember].Value().(string)
		body, refusal, silent := d.does(member, call.Body)
		if silent {
			continue
		}
		if refusal != "" {
			reply.Type = dbus.TypeError
			reply.Headers[dbus.FieldErrorName] = dbus.MakeVariant(refusal)
			body = []any{"canary in an error"}
		}
		if reply.Body = body; len(body) > 0 {
			reply.Headers[dbus.FieldSignature] = dbus.MakeVariant(dbus.SignatureOf(body...))
		}
		var out bytes.Buffer
		if err := reply.EncodeTo(&out, binary.LittleEndian); err != nil {
			panic(err)
		}
		binary.LittleEndian.PutUint32(out.Bytes()[8:], 1) // a number of its own, which may not be 0
		if _, err := conn.Write(out.Bytes()); err != nil {
			return
		}
	}
}

// calls are what was asked for so far.
func (d *desktop) calls() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return strings.Join(d.asked, " ")
}

// does is what a call is answered with.
func (d *desktop) does(member string, body []any) (answer []any, refusal string, silent bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.asked = append(d.asked, member)
	if refusal = d.refuses[member]; refusal != "" || d.stalled && member != "Hello" {
		return nil, refusal, refusal == ""
	}
	items := func(n int) []dbus.ObjectPath {
		return append([]dbus.ObjectPath{}, []dbus.ObjectPath{"/item/1", "/item/2", "/item/3"}[:n]...)
	}
	switch member {
	case "Hello":
		return []any{":1.1"}, "", false
	case "OpenSession":
		return []any{dbus.MakeVariant(""), dbus.ObjectPath("/session")}, "", false
	case "SearchItems":
		if by, is := body[0].(map[string]string); !is || by["service"] != "model" || len(by) != 1 {
			return []any{items(0), items(0)}, "", false
		}
		return []any{items(d.open), items(d.locked)}, "", false
	case "GetSecret":
		return []any{struct {
			Session    dbus.ObjectPath
			Parameters []byte
			Value      []byte
			Type       string
		}{body[0].(dbus.ObjectPath), []byte{}, []byte(d.text), "text/plain"}}, "", false
	}
	return nil, "org.freedesktop.DBus.Error.UnknownMethod", false
}

func (d *desktop) item() keyring.Item {
	return keyring.Item{Attributes: map[string]string{"service": "model"}, Bus: d.address}
}

func TestConforms(t *testing.T) {
	sourcetest.Conforms(t, func(t *testing.T) sourcetest.Harness {
		t.Helper()
		d := newDesktop(t)
		return sourcetest.Harness{
			Source: d.item(),
			Put:    func(_ *testing.T, text string) { d.set(func() { d.text, d.open = text, 1 }) },
			Remove: func(*testing.T) { d.set(func() { d.open = 0 }) },
			Stall:  func(*testing.T) { d.set(func() { d.stalled = true }) },
		}
	})
}

// TestWhatAKeyringSays becomes one sentence each. Nobody is prompted to unlock it.
func TestWhatAKeyringSays(t *testing.T) {
	const unknown = "org.freedesktop.DBus.Error.ServiceUnknown"
	for want, change := range map[string]func(d *desktop){
		"":                           func(*desktop) {},
		"the keyring is locked":      func(d *desktop) { d.open, d.locked = 0, 1 },
		"the keyring is locked; unl": func(d *desktop) { d.refuses["GetSecret"] = "org.freedesktop.Secret.Error.IsLocked" },
		"has 2 items with these attributes; give more":   func(d *desktop) { d.open = 2 },
		"the keyring has no item with these attributes":  func(d *desktop) { d.open = 0 },
		"no keyring answers on the session bus; start":   func(d *desktop) { d.refuses["OpenSession"] = unknown },
		"the keyring can't be searched":                  func(d *desktop) { d.refuses["SearchItems"] = unknown },
		"the keyring does not give the item":             func(d *desktop) { d.refuses["GetSecret"] = unknown },
		"the session bus does not let the daemon in; th": func(d *desktop) { d.refuses["Hello"] = "org.freedesktop.DBus.Error.AccessDenied" },
	} {
		d := newDesktop(t)
		change(d)
		v, err := d.item().Fetch(t.Context())
		if want == "" {
			if err != nil || v.Reveal() != "the-secret" || d.calls() != "Hello OpenSession SearchItems GetSecret" {
				t.Errorf("%q, %v, %q", v.Reveal(), err, d.calls())
			}
			continue
		}
		if !errors.Is(err, fault.ErrUnavailable) || !strings.Contains(fault.Sentence(err, ""), want) || strings.Contains(err.Error(), "canary") || v.Reveal() != "" {
			t.Errorf("%s: %v", want, err)
		}
		if asked := d.calls(); strings.Contains(asked, "Unlock") || strings.Contains(asked, "Prompt") {
			t.Errorf("%s: somebody is prompted: %s", want, asked)
		}
	}
}

// TestWithoutASession there is no keyring, and no bus is started. A bus that does not greet
// is given up.
func TestWithoutASession(t *testing.T) {
	d := newDesktop(t)
	item := keyring.Item{Attributes: map[string]string{"service": "model"}}
	t.Setenv("PATH", "") // where a bus would be started from
	for _, c := range []struct{ address, runtime, want string }{
		{d.address, "", ""},
		{"", filepath.Dir(strings.TrimPrefix(d.address, "unix:path=")), ""},
		{"", "", "the daemon has no session bus (DBUS_SESSION_BUS_ADDRESS is no socket)"},
		{"autolaunch:", "", "the daemon has no session bus"},
		{"tcp:host=127.0.0.1,port=1", "", "the daemon has no session bus"},
		{"unix:path=/no/such/bus", "", "the session bus can't be reached"},
		{"", "/no/such/directory", "the session bus can't be reached"},
	} {
		t.Setenv("DBUS_SESSION_BUS_ADDRESS", c.address)
		t.Setenv("XDG_RUNTIME_DIR", c.runtime)
		v, err := item.Fetch(t.Context())
		if c.want == "" && (err != nil || v.Reveal() != "the-secret") || c.want != "" && (err == nil || !strings.Contains(fault.Sentence(err, ""), c.want)) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	silent, err := net.Listen("unix", filepath.Join(t.TempDir(), "silent"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = silent.Close() })
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		conn, err := silent.Accept()
		if err == nil {
			defer conn.Close()
			_, _ = io.ReadFull(conn, make([]byte, 5)) // its greeting
		}
		cancel()
		_, _ = io.Copy(io.Discard, conn)
	}()
	item.Bus = "unix:path=" + silent.Addr().String()
	if _, err := item.Fetch(ctx); err == nil || fault.Sentence(err, "") != "the keyring does not answer in time" {
		t.Error(err)
	}
}
