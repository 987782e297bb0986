package e2e

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/client"
)

// wantAbsent: secrets that were used are nowhere inside: in no process's memory or
// environment, in no core that one would leave, on no disk, in no snapshot. Nor are they in
// the log of what happened, or in those of the daemon, the gateway and the keeper. In each
// of these places a control is found that was given to the sandbox on purpose, and so is
// the placeholder where that belongs.
func (in *installation) wantAbsent(t *testing.T, sb api.Sandbox, control string, secrets ...string) {
	t.Helper()
	placeholder := strings.TrimSpace(in.runClient(t, sb, "printenv", "OPENAI_API_KEY").Stdout)
	if len(placeholder) < 32 || slices.Contains(secrets, placeholder) {
		t.Fatalf("the placeholder is %q", placeholder)
	}
	core := in.stay(t, sb, control)
	if got := in.runAsRoot(t, sb, "sh", "-c", "for p in /proc/[0-9]*; do [ $p = /proc/$$ ] || head -c 1 $p/mem; done"); got.Stdout != "" || !strings.Contains(got.Stderr, "Permission denied") {
		t.Errorf("root inside reads the memory of others: %q %s", got.Stdout, got.Stderr)
	}
	environ := in.runClient(t, sb, "sh", "-c", "cat /proc/*/environ 2>/dev/null | tr '\\0' '\\n'")
	snapshot, err := in.Client.MakeSnapshot(t.Context(), sb.ID, api.MakeSnapshot{})
	if err != nil {
		t.Fatal(err)
	}
	inside := map[string]func(*search){
		"a process's core": func(s *search) { s.read(bytes.NewReader(core)) },
		"the environment":  func(s *search) { s.read(strings.NewReader(environ.Stdout)) },
		"the snapshot":     func(s *search) { s.tree(filepath.Join(in.paths().Snapshots(), snapshot.ID, "image")) },
		"the memory":       func(s *search) { in.searchSandbox(s, sb.ID, "/memfd:") },
		"the disk":         func(s *search) { in.searchSandbox(s, sb.ID, "filestore") },
	}
	outside := map[string]func(*search){
		"the log of what happened": func(s *search) { s.tree(in.paths().Audit()) },
		"the daemon's log":         func(s *search) { s.tree(in.paths().DaemonLog()) },
		"the installation's state": func(s *search) { s.tree(in.State); s.tree(in.Runtime) },
	}
	for where, look := range inside {
		wantFound(t, where, look, []string{control, placeholder}, secrets)
	}
	wantFound(t, "the engine", func(s *search) { in.searchSandbox(s, sb.ID, "") }, []string{sb.ID}, secrets) // it has the others at times
	for where, look := range outside {
		wantFound(t, where, look, []string{control}, secrets)
	}
	in.wantAbsentInProcesses(t, secrets)
}

// wantAbsentInProcesses: of the host's own processes only the daemon, which reads secrets, and
// the gateway, which puts them in, have them in memory; in the latter they are found, so that
// the search is seen to see. What anybody can see of a process has none, none leaves a core, and
// nothing that one says as it crashes has any: it is sent SIGQUIT, and prints all that it does.
func (in *installation) wantAbsentInProcesses(t *testing.T, secrets []string) {
	t.Helper()
	roles := map[string]string{}
	for pid := range in.family() {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		for _, role := range []string{"serve", "keeper", "gateway", "dialer"} {
			if bytes.Contains(args, []byte("\x00"+role+"\x00")) {
				roles[role] = dir
			}
		}
	}
	for _, role := range []string{"dialer", "gateway", "keeper", "serve"} { // the daemon last: the others end with it
		dir := roles[role]
		if dir == "" {
			t.Errorf("INCONCLUSIVE: the process of the role %s was not found", role)
			continue
		}
		limits, err := os.ReadFile(filepath.Join(dir, "limits"))
		if err != nil || !strings.Contains(strings.Join(strings.Fields(string(limits)), " "), "Max core file size 0 0") {
			t.Errorf("%s may leave a core: %v", role, err)
		}
		wantFound(t, "what is seen of the "+role, func(s *search) {
			for _, name := range []string{"cmdline", "environ", "comm", "status", "mountinfo", "maps"} {
				s.file(filepath.Join(dir, name))
			}
		}, []string{role}, secrets)
		switch role {
		case "gateway":
			wantFound(t, "the gateway's memory", func(s *search) { s.memory(dir) }, secrets, nil)
		case "dialer", "keeper":
			wantFound(t, "the memory of the "+role, func(s *search) { s.memory(dir) }, []string{role}, secrets)
		}
		if role != "dialer" { // with which the gateway would end
			in.crash(t, role, dir)
		}
	}
	in.Daemon.Wait() // an error: it crashed
	wantFound(t, "what was said by those that crashed", func(s *search) { s.tree(in.State); s.tree(in.Runtime) }, []string{"SIGQUIT: quit", "goroutine 1 "}, secrets)
	in.launch(t) // for whoever ends it
	in.answers(t)
}

// crash has a process of the host print what it does, and end.
func (in *installation) crash(t *testing.T, role, dir string) {
	t.Helper()
	pid, err := strconv.Atoi(filepath.Base(dir))
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Errorf("INCONCLUSIVE: the %s has gone: %v", role, err)
		return
	}
	defer unix.Close(fd)
	if err := unix.PidfdSendSignal(fd, unix.SIGQUIT, nil, 0); err != nil {
		t.Error(err)
	}
	if n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}, 60_000); n != 1 || err != nil {
		t.Errorf("INCONCLUSIVE: the %s does not end of SIGQUIT: %v", role, err)
	}
}

// stay starts one of the clients that keeps running, and gives what a core of it would
// have: all of its memory, as it read it itself. It has the control in its environment and
// writes it to the disk, and it asks a host of that name, which nobody is at.
func (in *installation) stay(t *testing.T, sb api.Sandbox, control string) []byte {
	t.Helper()
	cmd, err := in.Client.StartCommand(t.Context(), sb.ID, api.StartCommand{
		Argv: []string{"/home/agent/.venv/bin/python3", "/home/agent/app/stay.py", control}, Env: map[string]string{"CONTROL": control},
	})
	if err != nil {
		t.Fatal(err)
	}
	at, err := in.Client.Attach(t.Context(), sb.ID, cmd.ID, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	said := ""
	for event, err := range at.Events() {
		if err != nil || event.Exit != nil {
			t.Fatalf("it did not stay: %v %s", err, said)
		}
		if said += string(event.Stdout) + string(event.Stderr); strings.Contains(said, "dumped\n") {
			break
		}
	}
	from, err := in.Client.ReadFile(t.Context(), sb.ID, client.File{Path: "/home/agent/core"})
	if err != nil {
		t.Fatal(err)
	}
	defer from.Close()
	core, err := io.ReadAll(from)
	if err != nil {
		t.Fatal(err)
	}
	return core
}

// runAsRoot runs a command as the sandbox's root.
func (in *installation) runAsRoot(t *testing.T, sb api.Sandbox, argv ...string) result {
	t.Helper()
	got, err := executeAs(t.Context(), in.Client, sb.ID, "root", argv...)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// wantFound looks in one place for what must be there and what must not.
func wantFound(t *testing.T, where string, look func(*search), present, absent []string) {
	t.Helper()
	t.Helper()
	s := &search{texts: append(slices.Clone(present), absent...), found: map[string]string{}}
	look(s)
	if s.err != nil {
		t.Errorf("%s can't be looked through: %v", where, s.err)
	}
	for _, text := range present {
		if s.found[text] == "" {
			t.Errorf("in %s there is no %s, so that the secret was not found there proves nothing", where, text)
		}
	}
	for _, text := range absent {
		if at := s.found[text]; at != "" {
			t.Errorf("the secret is in %s: %s", where, at)
		}
	}
	t.Logf("%s: %d MB, %v", where, s.bytes>>20, s.found)
}

// search looks for texts in streams.
type search struct {
	texts []string
	found map[string]string // where each was found last
	at    string            // what is being read
	bytes int64
	err   error
}

// read looks through one. What ends of it in a piece is looked at with the next.
func (s *search) read(from io.Reader) {
	const overlap = 256
	buf, kept := make([]byte, 1<<20), 0
	for {
		n, err := from.Read(buf[kept:])
		s.bytes += int64(n)
		for _, text := range s.texts {
			if bytes.Contains(buf[:kept+n], []byte(text)) {
				s.found[text] = "found " + s.at
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				s.err = errors.Join(s.err, fmt.Errorf("%s: %w", s.at, err))
			}
			return
		}
		last := buf[max(0, kept+n-overlap) : kept+n]
		kept = copy(buf, last)
	}
}

// tree looks through the files below one.
func (s *search) tree(root string) {
	s.err = errors.Join(s.err, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			if errors.Is(err, fs.ErrNotExist) {
				return nil // it has gone meanwhile
			}
			return err
		}
		f, err := os.Open(path)
		if err != nil {
			return err
		}
		defer f.Close()
		s.at = path
		s.read(f)
		return nil
	}))
}

// file looks through one that may be there.
func (s *search) file(path string) {
	f, err := os.Open(path)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	defer f.Close()
	s.at = path
	s.read(f)
}

// searchSandbox looks from the host through the files of a sandbox whose names have some
// text, which the processes around it hold: its memory, and the layers that it writes to.
// Without a text it looks through the memory of these processes themselves.
func (in *installation) searchSandbox(s *search, id, files string) {
	processes := 0
	for pid := range in.family() {
		dir := filepath.Join("/proc", strconv.Itoa(pid))
		args, _ := os.ReadFile(filepath.Join(dir, "cmdline"))
		if !bytes.HasPrefix(args, []byte("runsc-sandbox")) && !bytes.HasPrefix(args, []byte("runsc-gofer")) || !bytes.Contains(args, []byte(id)) {
			continue
		}
		processes++
		if files == "" {
			s.memory(dir)
			continue
		}
		fds, _ := filepath.Glob(filepath.Join(dir, "fd", "*"))
		for _, fd := range fds {
			if target, _ := os.Readlink(fd); strings.Contains(target, files) {
				s.at = target
				s.sparse(fd)
			}
		}
	}
	if processes < 2 {
		s.err = fmt.Errorf("only %d processes of the sandbox were found", processes)
	}
}

// sparse looks through what there is of a file with holes.
func (s *search) sparse(path string) {
	f, err := os.Open(path)
	if err != nil {
		s.err = errors.Join(s.err, err)
		return
	}
	defer f.Close()
	for end := int64(0); ; {
		begin, err := f.Seek(end, unix.SEEK_DATA)
		if err != nil {
			return // there is no more
		}
		if end, err = f.Seek(begin, unix.SEEK_HOLE); err != nil {
			s.err = errors.Join(s.err, err)
			return
		}
		s.read(io.NewSectionReader(f, begin, end-begin))
	}
}

// memory looks through a process's own pages: what it shares is a file, and looked through
// as that.
func (s *search) memory(dir string) {
	maps, err := os.ReadFile(filepath.Join(dir, "maps"))
	f, failure := os.Open(filepath.Join(dir, "mem"))
	if s.err = errors.Join(s.err, err, failure); s.err != nil {
		return
	}
	defer f.Close()
	for line := range strings.Lines(string(maps)) {
		var begin, end int64
		var access string
		if _, err := fmt.Sscanf(line, "%x-%x %s", &begin, &end, &access); err != nil || access[0] != 'r' || access[3] == 's' || begin < 0 {
			continue
		}
		s.at = strings.TrimSpace(line)
		part := &search{texts: s.texts, found: s.found, at: s.at}
		part.read(io.NewSectionReader(f, begin, end-begin)) // a page may be none, as the vvar's
		s.bytes += part.bytes
	}
}
