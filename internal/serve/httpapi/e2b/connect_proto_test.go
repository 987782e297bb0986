package e2b

import (
	"bytes"
	"encoding/binary"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
)

// wire is a message as its bytes say: by the numbers of its fields, numbers as uint64
// and all else as bytes.
type wire map[protowire.Number][]any

func readWire(t *testing.T, data []byte) wire {
	t.Helper()
	found := wire{}
	for len(data) > 0 {
		number, kind, n := protowire.ConsumeTag(data)
		if n < 0 {
			t.Fatalf("no tag in %q", data)
		}
		data = data[n:]
		switch kind {
		case protowire.VarintType:
			v, n := protowire.ConsumeVarint(data)
			found[number], data = append(found[number], v), data[n:]
		case protowire.BytesType:
			v, n := protowire.ConsumeBytes(data)
			found[number], data = append(found[number], v), data[n:]
		default:
			t.Fatalf("a field of type %d", kind)
		}
	}
	return found
}

func (w wire) text(number protowire.Number) string {
	if len(w[number]) == 0 {
		return ""
	}
	b, _ := w[number][0].([]byte)
	return string(b)
}

func (w wire) number(number protowire.Number) uint64 {
	if len(w[number]) == 0 {
		return 0
	}
	n, _ := w[number][0].(uint64)
	return n
}

// put is a field with bytes, whatever they mean.
func put(number protowire.Number, value string) string {
	return string(protowire.AppendString(protowire.AppendTag(nil, number, protowire.BytesType), value))
}

// inProto is a unary call whose messages are binary.
func (s *dataStage) inProto(procedure, message string) (int, string, http.Header) {
	s.t.Helper()
	r := s.request(http.MethodPost, procedure, strings.NewReader(message))
	r.Header.Set("Content-Type", "application/proto")
	res, err := s.server.Client().Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer res.Body.Close()
	data, err := io.ReadAll(res.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return res.StatusCode, string(data), res.Header
}

// TestBinaryUnaryCalls: by the bytes themselves; the real clients are in test/sdk.
func TestBinaryUnaryCalls(t *testing.T) {
	s := newDataStage(t)
	status, body, header := s.inProto(filesystemService+"MakeDir", put(1, "d/é"))
	if status != http.StatusOK || header.Get("Content-Type") != "application/proto" {
		t.Fatalf("%d %q %v", status, body, header)
	}
	entry := readWire(t, []byte(readWire(t, []byte(body)).text(1)))
	if entry.text(1) != "é" || entry.number(2) != 2 || entry.text(3) != "/home/user/d/é" || entry.number(5) != 0o755 || entry.text(6) != "drwxr-xr-x" ||
		entry.text(7) != "user" || readWire(t, []byte(entry.text(9))).number(1) < 1e9 {
		t.Errorf("%v", entry)
	}
	if err := os.WriteFile(filepath.Join(s.box.Files.Root, "home/user/d/f"), make([]byte, 300), 0o644); err != nil {
		t.Fatal(err)
	}
	_, body, _ = s.inProto(filesystemService+"ListDir", put(1, "d"))
	list := readWire(t, []byte(body))[1]
	if len(list) != 2 || readWire(t, list[0].([]byte)).number(4) != 300 && readWire(t, list[1].([]byte)).number(4) != 300 {
		t.Errorf("%q", list)
	}
	if status, body, _ = s.inProto(filesystemService+"ListDir", put(1, "d/é")); status != http.StatusOK || body != "" {
		t.Errorf("an empty list: %d %q", status, body)
	}
	if status, body, _ = s.inProto(processService+"List", ""); status != http.StatusOK || body != "" {
		t.Errorf("no processes: %d %q", status, body)
	}
	// Errors are JSON in both forms.
	status, body, header = s.inProto(filesystemService+"Stat", put(1, "nothing"))
	if status != http.StatusNotFound || header.Get("Content-Type") != "application/json" || !strings.Contains(body, `"code":"not_found"`) {
		t.Errorf("%d %s %v", status, body, header)
	}
	selected := put(1, put(2, "no such tag"))
	for name, message := range map[string]string{
		"cut short": put(1, "path")[:3], "not UTF-8": put(1, "\xff"), "a number where text is": "\x08\x01\x0a", "a group without an end": "\x7b",
	} {
		if status, body, _ := s.inProto(filesystemService+"Stat", message); status != http.StatusBadRequest || !strings.Contains(body, "invalid_argument") {
			t.Errorf("%s: %d %s", name, status, body)
		}
	}
	if status, body, _ := s.inProto(processService+"SendSignal", selected+"\x10\x09"); status != http.StatusNotFound || !strings.Contains(body, "no such tag") {
		t.Errorf("%d %s", status, body)
	}
}

// TestBinaryStream: a command's events, and the end, which is JSON.
func TestBinaryStream(t *testing.T) {
	overBoth(t, func(t *testing.T, s *dataStage) {
		start := put(1, put(1, "/bin/sh")+put(2, "-c")+put(2, `echo "$A"; cat; echo no >&2; exit 3`)+put(3, put(1, "A")+put(2, "ä"))) + put(3, "mine") + "\x20\x00"
		r := s.request(http.MethodPost, processService+"Start", bytes.NewReader(envelope(0, start)))
		r.Header.Set("Content-Type", "application/connect+proto")
		res, err := s.server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if got := res.Header.Get("Content-Type"); got != "application/connect+proto" {
			t.Fatal(got)
		}
		next := func() (flags byte, payload []byte) {
			var head [envelopeSize]byte
			if _, err := io.ReadFull(res.Body, head[:]); err != nil {
				t.Fatal(err)
			}
			payload = make([]byte, binary.BigEndian.Uint32(head[1:]))
			if _, err := io.ReadFull(res.Body, payload); err != nil {
				t.Fatal(err)
			}
			return head[0], payload
		}
		var stdout, stderr string
		var pid uint64
		var end wire
		for {
			flags, payload := next()
			if flags == flagEnd {
				if string(payload) != "{}" {
					t.Errorf("the end is %s", payload)
				}
				break
			}
			event := readWire(t, []byte(readWire(t, payload).text(1)))
			if _, ok := event[1]; ok {
				pid = readWire(t, []byte(event.text(1))).number(1)
			}
			data := readWire(t, []byte(event.text(2)))
			stdout, stderr = stdout+data.text(1), stderr+data.text(2)
			if _, ok := event[3]; ok {
				end = readWire(t, []byte(event.text(3)))
			}
		}
		if pid == 0 || stdout != "ä\n" || stderr != "no\n" {
			t.Errorf("%d %q %q", pid, stdout, stderr)
		}
		if protowire.DecodeZigZag(end.number(1)) != 3 || end.number(2) != 1 || end.text(3) != "exit status 3" {
			t.Errorf("the end is %v", end)
		}
	})
}

// TestEveryCallIsBinaryToo: each route of the two services has its messages, and each
// message its route.
func TestEveryCallIsBinaryToo(t *testing.T) {
	s := newDataStage(t)
	for path, codec := range s.data.codecs {
		r := s.request(http.MethodPost, path, nil)
		if _, pattern := s.data.routes.Handler(r); pattern != "POST "+path || codec.in == nil || codec.out == nil {
			t.Errorf("%s: %q, %+v", path, pattern, codec)
		}
	}
	for _, service := range []string{processService, filesystemService} {
		for _, call := range []string{
			"Start", "Connect", "List", "SendInput", "CloseStdin", "SendSignal", "Update", "StreamInput",
			"Stat", "MakeDir", "Move", "ListDir", "Remove", "WatchDir", "CreateWatcher", "GetWatcherEvents", "RemoveWatcher",
		} {
			_, pattern := s.data.routes.Handler(s.request(http.MethodPost, service+call, nil))
			if (pattern == "POST "+service+call) != (s.data.codecs[service+call] != nil) {
				t.Errorf("%s%s is not in both forms", service, call)
			}
		}
	}
}
