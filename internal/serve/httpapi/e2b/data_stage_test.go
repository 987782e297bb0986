package e2b

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/token"
	"github.com/cofferdam-dev/cofferdam/internal/decide/token/tokentest"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend"
	"github.com/cofferdam-dev/cofferdam/internal/serve/httpapi/backend/backendtest"
)

// accessStub gives each sandbox a token of its name, and the ports of some one.
type accessStub map[string]string

func (accessStub) Token(id string) string { return "token-" + id }

func (a accessStub) Traffic(id string) string { return a[id] }

func (accessStub) Contexts(id string) string { return "contexts-" + id }

// dataStage is a data plane with one box behind it.
type dataStage struct {
	t      *testing.T
	boxes  *backendtest.Boxes
	box    *backendtest.Box
	people *backendtest.People
	access accessStub
	data   *Data
	server *httptest.Server
	owner  sandbox.Owner // of boxes that are added
}

const boxID = "sb01"

func newDataStage(t *testing.T) *dataStage {
	t.Helper()
	nobody, err := token.Open(t.Context(), tokentest.NewMemory(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return newDataStageOf(t, sandbox.Owner{}, nobody)
}

// newDataStageOf has the box belong to one of clients.
func newDataStageOf(t *testing.T, owner sandbox.Owner, clients Clients) *dataStage {
	t.Helper()
	s := &dataStage{t: t, boxes: &backendtest.Boxes{}, people: &backendtest.People{}, access: accessStub{}, owner: owner}
	s.box = s.add(boxID)
	s.data = NewData(DataConfig{Sandboxes: s.boxes, Access: s.access, Clients: clients, Domain: "box.example:7433", Log: slog.New(slog.NewTextHandler(t.Output(), nil))})
	s.server = httptest.NewServer(backend.Hurried(s.data)) // as the daemon serves it
	t.Cleanup(s.server.Close)
	return s
}

// overBoth runs a test over HTTP/1.1 and over HTTP/2 with TLS, whose writers and
// bodies are others, and must not be touched after their handler.
func overBoth(t *testing.T, test func(t *testing.T, s *dataStage)) {
	t.Helper()
	t.Run("HTTP/1.1", func(t *testing.T) {
		t.Parallel()
		test(t, newDataStage(t))
	})
	t.Run("HTTP/2", func(t *testing.T) {
		t.Parallel()
		s := newDataStage(t)
		s.server.Close()
		s.server = httptest.NewUnstartedServer(backend.Hurried(s.data))
		s.server.EnableHTTP2 = true
		s.server.StartTLS()
		t.Cleanup(s.server.Close)
		test(t, s)
	})
}

func (s *dataStage) add(id string) *backendtest.Box {
	s.t.Helper()
	root := s.t.TempDir()
	if err := os.MkdirAll(filepath.Join(root, "home/user"), 0o755); err != nil {
		s.t.Fatal(err)
	}
	files := &backendtest.Files{Root: root, Home: "/home/user"}
	info := sandbox.Info{ID: id, Owner: s.owner, Account: sandbox.Account{Name: "user", Home: "/home/user"}, Limits: engine.Limits{DiskBytes: 1 << 20}}
	holds := s.people.Waits(s.t.Context(), id, s.t.TempDir())
	box := &backendtest.Box{
		StandIn: sandbox.NewStandIn(info, nil, holds), Holds: holds,
		Files: files, Commands: &backendtest.Commands{Files: files, Env: append(os.Environ(), "HOME="+filepath.Join(root, "home/user"))},
		Ports: map[int]string{},
	}
	s.t.Cleanup(box.Commands.Kill)
	s.boxes.Add(box)
	return box
}

// request makes a request to the box that is let through.
func (s *dataStage) request(method, path string, body io.Reader) *http.Request {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.server.URL+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	r.Header.Set(headerSandbox, boxID)
	r.Header.Set(headerPort, strconv.Itoa(dataPort))
	r.Header.Set("X-Access-Token", "token-"+boxID)
	return r
}

func (s *dataStage) do(r *http.Request) (status int, body string) {
	s.t.Helper()
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(data)
}

// ask is a unary call.
func (s *dataStage) ask(procedure, message string) (status int, body string) {
	s.t.Helper()
	r := s.request(http.MethodPost, procedure, strings.NewReader(message))
	r.Header.Set("Content-Type", typeUnary)
	return s.do(r)
}

// got decodes a unary call's answer.
func (s *dataStage) got(procedure, message string) map[string]any {
	s.t.Helper()
	status, body := s.ask(procedure, message)
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil || status != http.StatusOK {
		s.t.Fatalf("%s %s: %d %s", procedure, message, status, body)
	}
	return v
}

func envelope(flags byte, message string) []byte {
	head := []byte{flags, 0, 0, 0, 0}
	binary.BigEndian.PutUint32(head[1:], uint32(len(message)))
	return append(head, message...)
}

// events is an open server stream.
type events struct {
	t    *testing.T
	body io.ReadCloser
}

// open opens a server stream; headers are pairs.
func (s *dataStage) open(procedure, message string, headers ...string) *events {
	s.t.Helper()
	r := s.request(http.MethodPost, procedure, bytes.NewReader(envelope(0, message)))
	r.Header.Set("Content-Type", typeStream)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { res.Body.Close() })
	if res.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(res.Body)
		s.t.Fatalf("%s %s: %d %s", procedure, message, res.StatusCode, body)
	}
	return &events{s.t, res.Body}
}

// message is one of a stream.
type message struct {
	end   bool
	Event struct {
		Start *struct {
			PID int `json:"pid"`
		} `json:"start"`
		Data *struct {
			Stdout []byte `json:"stdout"`
			Stderr []byte `json:"stderr"`
			PTY    []byte `json:"pty"`
		} `json:"data"`
		End       *end      `json:"end"`
		Keepalive *struct{} `json:"keepalive"`
	} `json:"event"`
	Start      *struct{}   `json:"start"`
	Filesystem *watchEvent `json:"filesystem"`
	Keepalive  *struct{}   `json:"keepalive"`
	Error      *failure    `json:"error"`
}

func (e *events) try() (message, error) {
	var head [envelopeSize]byte
	if _, err := io.ReadFull(e.body, head[:]); err != nil {
		return message{}, err
	}
	payload := make([]byte, binary.BigEndian.Uint32(head[1:]))
	if _, err := io.ReadFull(e.body, payload); err != nil {
		return message{}, err
	}
	m := message{end: head[0] == flagEnd}
	return m, json.Unmarshal(payload, &m)
}

func (e *events) next() message {
	e.t.Helper()
	m, err := e.try()
	if err != nil {
		e.t.Fatal(err)
	}
	return m
}

// started reads the first event.
func (e *events) started() int {
	e.t.Helper()
	m := e.next()
	if m.Event.Start == nil {
		e.t.Fatalf("the first message is %+v", m)
	}
	return m.Event.Start.PID
}

// until reads output until it has text.
func (e *events) until(text string) {
	e.t.Helper()
	seen := ""
	for !strings.Contains(seen, text) {
		m := e.next()
		if m.end {
			e.t.Fatalf("the stream ended with %+v after %q", m.Error, seen)
		}
		if m.Event.Data != nil {
			seen += string(m.Event.Data.Stdout) + string(m.Event.Data.PTY)
		}
	}
}

// finish reads to the end: how the command ended, and how the stream did.
func (e *events) finish() (*end, *failure) {
	e.t.Helper()
	var last *end
	for {
		m := e.next()
		if m.end {
			return last, m.Error
		}
		if m.Event.End != nil {
			last = m.Event.End
		}
	}
}

// liar opens files that are not what they seem.
type liar struct {
	*backendtest.Boxes
	frames func(*channel.Conn)
}

func (l *liar) OpenFile(context.Context, string, channel.File) (*channel.Conn, channel.FileInfo, error) {
	near, far := net.Pipe()
	go func() {
		defer far.Close()
		l.frames(channel.NewConn(far))
	}()
	return channel.NewConn(near), channel.FileInfo{Path: "/home/user/f", Kind: channel.KindFile, Size: 10}, nil
}
