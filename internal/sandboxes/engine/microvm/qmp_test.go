package microvm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// said is a conversation with a monitor that answers as one was seen to.
type said struct {
	commands []string
	files    int // descriptors that came along
}

// play listens, and answers each command with lines; a command of which there are several
// answers gives them in turn, and the last again.
func play(t *testing.T, greeting string, answers map[string][]string) (socket string, heard func() said) {
	t.Helper()
	socket = filepath.Join(t.TempDir(), "q")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	if err != nil {
		t.Fatal(err)
	}
	var s said
	over := make(chan struct{})
	go func() {
		defer close(over)
		conn, err := listener.Accept()
		if err != nil {
			return
		}
		defer conn.Close()
		fmt.Fprintln(conn, greeting)
		s.talk(conn.(*net.UnixConn), answers)
	}()
	return socket, func() said {
		_ = listener.Close()
		<-over
		return s
	}
}

func (s *said) talk(conn *net.UnixConn, answers map[string][]string) {
	for {
		line, rights := make([]byte, 64<<10), make([]byte, 256)
		n, more, _, _, err := conn.ReadMsgUnix(line, rights)
		if err != nil {
			return
		}
		if messages, err := unix.ParseSocketControlMessage(rights[:more]); err == nil && len(messages) == 1 {
			fds, _ := unix.ParseUnixRights(&messages[0])
			for _, fd := range fds {
				s.files++
				_ = unix.Close(fd)
			}
		}
		var asked struct {
			Execute   string         `json:"execute"`
			Arguments map[string]any `json:"arguments"`
		}
		if json.Unmarshal(line[:n], &asked) != nil {
			return
		}
		s.commands = append(s.commands, strings.TrimSpace(asked.Execute+" "+fmt.Sprint(asked.Arguments["uri"])))
		left := answers[asked.Execute]
		if len(left) == 0 {
			left = []string{`{"return": {}}`}
		}
		fmt.Fprintln(conn, left[0])
		if len(left) > 1 {
			answers[asked.Execute] = left[1:]
		}
	}
}

const greets = `{"QMP": {"version": {"qemu": {"micro": 22, "minor": 2, "major": 7}, "package": "Debian"}, "capabilities": ["oob"]}}`

func TestSaveHandsTheFileOver(t *testing.T) {
	socket, heard := play(t, greets, map[string][]string{
		"stop": {`{"timestamp": {"seconds": 1, "microseconds": 2}, "event": "STOP"}` + "\n" + `{"return": {}}`},
		"query-migrate": {
			`{"return": {"status": "setup"}}`, `{"return": {"status": "active", "ram": {"total": 1}}}`,
			`{"event": "STOP"}` + "\n" + `{"return": {"status": "completed"}}`,
		},
	})
	q, err := dialQMP(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.Create(filepath.Join(t.TempDir(), "image"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if err := errors.Join(q.Stop(t.Context()), q.Save(t.Context(), f), q.Continue(t.Context()), q.Close()); err != nil {
		t.Fatal(err)
	}
	got := heard()
	want := "qmp_capabilities,stop,migrate-set-parameters,getfd,migrate fd:image,query-migrate,query-migrate,query-migrate,cont"
	if all := strings.ReplaceAll(strings.Join(got.commands, ","), " <nil>", ""); all != want || got.files != 1 {
		t.Errorf("it heard %s with %d files, want %s with one", all, got.files, want)
	}
}

// TestSharedMemoryIsKeptOut: before the machine is read, and only of one whose memory is shared;
// a monitor that can't is not told to read.
func TestSharedMemoryIsKeptOut(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, machineName), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		shared  bool
		refuses bool
		want    string
	}{
		"shared":            {true, false, "qmp_capabilities,migrate-set-capabilities,getfd,migrate-incoming fd:image,query-migrate"},
		"of older versions": {false, false, "qmp_capabilities,getfd,migrate-incoming fd:image,query-migrate"},
		"a monitor of old":  {true, true, "qmp_capabilities,migrate-set-capabilities"},
	} {
		t.Run(name, func(t *testing.T) {
			answers := map[string][]string{"query-migrate": {`{"return": {"status": "completed"}}`}}
			if c.refuses {
				answers["migrate-set-capabilities"] = []string{`{"error": {"class": "GenericError", "desc": "Parameter 'x-ignore-shared' is unknown"}}`}
			}
			socket, heard := play(t, greets, answers)
			q, err := dialQMP(t.Context(), socket)
			if err != nil {
				t.Fatal(err)
			}
			err = qemuControls{q}.Read(t.Context(), machine{Shared: c.shared}, dir)
			if (err != nil) != c.refuses {
				t.Error(err)
			}
			_ = q.Close()
			if all := strings.ReplaceAll(strings.Join(heard().commands, ","), " <nil>", ""); all != c.want {
				t.Errorf("it heard %s, want %s", all, c.want)
			}
		})
	}
}

func TestWhatAMonitorRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		answers map[string][]string
		want    string
	}{
		"an error":       {map[string][]string{"migrate-incoming": {`{"error": {"class": "GenericError", "desc": "'-incoming defer' is required"}}`}}, "is required"},
		"a failed move":  {map[string][]string{"query-migrate": {`{"return": {"status": "failed", "error-desc": "No space left on device"}}`}}, "No space left"},
		"no answer":      {map[string][]string{"getfd": {`{}`}}, "nothing that is an answer"},
		"no JSON":        {map[string][]string{"getfd": {`hello`}}, "invalid character"},
		"a long line":    {map[string][]string{"getfd": {`{"return": "` + strings.Repeat("x", mostQMP) + `"}`}}, "a line of more than"},
		"an end at once": {map[string][]string{"getfd": {"{"}}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			socket, heard := play(t, greets, c.answers)
			q, err := dialQMP(t.Context(), socket)
			if err != nil {
				t.Fatal(err)
			}
			err = q.Load(t.Context(), os.Stdin)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%v, want %q", err, c.want)
			}
			_ = q.Close()
			heard()
		})
	}
}

func TestAMonitorThatSaysNothing(t *testing.T) {
	socket, heard := play(t, `{"QMP": {}}`, map[string][]string{"stop": {`{"event": "NOTHING"}`}})
	q, err := dialQMP(t.Context(), socket)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := q.Stop(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("stop: %v", err)
	}
	_ = q.Close()
	heard()
	if _, err := dialQMP(t.Context(), socket); err == nil {
		t.Error("one that is gone answers")
	}
	other, heard := play(t, `{"hello": 1}`, nil)
	if _, err := dialQMP(t.Context(), other); err == nil {
		t.Error("one that does not greet is spoken with")
	}
	heard()
}
