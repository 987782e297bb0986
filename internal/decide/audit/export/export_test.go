package export

import (
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/hostpath"
)

func sample(seq uint64) audit.Record {
	code := -1
	return audit.Record{
		Seq: seq, Time: time.Date(2026, 11, 1, 0, 0, int(seq), 5, time.UTC), Kind: audit.KindPackage, Outcome: audit.Served, Run: "run-7", Sandbox: "sb-1",
		Ecosystem: "python", Package: "rich", RequestedVersion: ">=13", InstalledVersion: "13.7.1", SourceURL: "https://files.example/rich.whl",
		SHA256: strings.Repeat("a", 64), ResolvedBy: "allowlist", Rule: "=HYPERLINK(1)", Reason: "a\nb\x1b[2J\u202e", Command: []string{"pip", "<&>"},
		Exit: &code, Detail: map[string]string{"k": "v"}, User: "ada",
	}
}

// nine are the fields that come first.
func nine() []string {
	return []string{"timestamp", "agent_run_id", "package_name", "requested_version", "installed_version", "source_url", "package_hash_sha256", "resolved_by", "outcome"}
}

func TestJSONLHasTheNineFieldsFirst(t *testing.T) {
	for _, r := range []audit.Record{sample(3), {Seq: 4, Kind: audit.KindDaemon}} {
		line, err := Line(JSONL, r)
		if err != nil {
			t.Fatal(err)
		}
		dec := json.NewDecoder(strings.NewReader(string(line)))
		var keys []string
		_, _ = dec.Token()
		for dec.More() {
			key, err := dec.Token()
			if err != nil {
				t.Fatal(err)
			}
			keys = append(keys, key.(string))
			var value json.RawMessage
			if err := dec.Decode(&value); err != nil {
				t.Fatal(err)
			}
		}
		first := slices.Clone(keys[:9])
		slices.Sort(keys)
		if !slices.Equal(first, nine()) || len(slices.Compact(slices.Clone(keys))) != len(keys) {
			t.Errorf("the first keys are %v, all are %v", first, keys)
		}
		var back audit.Record
		if err := json.Unmarshal(line, &back); err != nil {
			t.Fatal(err)
		}
		want, _ := json.Marshal(r)
		if got, _ := json.Marshal(back); string(got) != string(want) {
			t.Errorf("%s came back as %s", want, got)
		}
		if strings.ContainsAny(string(line[:len(line)-1]), "\x1b\u202e\n") {
			t.Errorf("%q has what a terminal obeys", line)
		}
	}
}

func TestCSV(t *testing.T) {
	line, err := Line(CSV, sample(3))
	if err != nil {
		t.Fatal(err)
	}
	rows, err := csv.NewReader(strings.NewReader(string(Head(CSV)) + string(line))).ReadAll()
	if err != nil || len(rows) != 2 || len(rows[0]) != len(rows[1]) {
		t.Fatal(rows, err)
	}
	if !slices.Equal(rows[0][:9], nine()) {
		t.Errorf("the columns are %v", rows[0])
	}
	cells := map[string]string{}
	for i, name := range rows[0] {
		cells[name] = rows[1][i]
	}
	for name, want := range map[string]string{
		"timestamp": "2026-11-01T00:00:03.000000005Z", "seq": "3", "rule": "'=HYPERLINK(1)", "reason": `a\nb\u001b[2J\u202e`, "command": `["pip","<&>"]`, "exit_code": "-1", "detail": `{"k":"v"}`,
	} {
		if cells[name] != want {
			t.Errorf("%s is %q, want %q", name, cells[name], want)
		}
	}
}

func TestCell(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "plain": "plain", "=1": "'=1", "+1": "'+1", "-1": "'-1", "@a": "'@a", "\t=1": `'\t=1`, "\rx": `'\rx`, " =1": "' =1", "＝1": "'＝1",
		"a=b": "a=b", "\x00": `\u0000`, "\xff": `\xff`, "\U000e0041": `\U000e0041`, "é": "é",
	} {
		if got := Cell(text); got != want {
			t.Errorf("%q is %q, want %q", text, got, want)
		}
	}
}

func TestErasedIsSaid(t *testing.T) {
	r := sample(1)
	r.User, r.Task, r.Erased = "", "", true
	for _, f := range []Format{JSONL, CSV} {
		if line, err := Line(f, r); err != nil || strings.Count(string(line), "(erased)") != 2 {
			t.Errorf("%s: %s, %v", f, line, err)
		}
	}
}

// errKilled is what every call gets after the process was killed.
var errKilled = errors.New("killed")

// mortalDisk does so many calls, the last of them perhaps by half, and no more.
type mortalDisk struct {
	osDisk
	left *int
}

func (d mortalDisk) killed() bool {
	*d.left--
	return *d.left < 0
}

func (d mortalDisk) openFile(path string, mustBeNew bool) (file, error) {
	if d.killed() {
		return nil, errKilled
	}
	f, err := d.osDisk.openFile(path, mustBeNew)
	return mortalFile{f, d}, err
}

// replace dies before the rename, after a part of the bytes, or after it.
func (d mortalDisk) replace(path string, data []byte) error {
	if d.killed() {
		_ = os.WriteFile(path+".new", data[:len(data)/2], 0o600)
		return errKilled
	}
	if err := d.osDisk.replace(path, data); err != nil {
		return err
	}
	if d.killed() {
		return errKilled
	}
	return nil
}

func (d mortalDisk) syncDir(dir string) error {
	if d.killed() {
		return errKilled
	}
	return d.osDisk.syncDir(dir)
}

type mortalFile struct {
	file
	disk mortalDisk
}

func (f mortalFile) WriteAt(p []byte, off int64) (int, error) {
	if f.disk.killed() {
		n, _ := f.file.WriteAt(p[:len(p)/2], off)
		return n, errKilled
	}
	return f.file.WriteAt(p, off)
}

func (f mortalFile) Truncate(size int64) error {
	if f.disk.killed() {
		return errKilled
	}
	return f.file.Truncate(size)
}

func (f mortalFile) Sync() error {
	if f.disk.killed() {
		return errKilled
	}
	return f.file.Sync()
}

// TestAFollowerThatDiesResumes kills a follower at each of its calls, and the one
// that goes on at each of its own, and so on: at the end the output has each
// record once.
func TestAFollowerThatDiesResumes(t *testing.T) {
	const records, perCommit = 40, 7
	for _, format := range []Format{JSONL, CSV} {
		want := string(Head(format))
		for i := range records {
			line, err := Line(format, sample(uint64(i)))
			if err != nil {
				t.Fatal(err)
			}
			want += string(line)
		}
		for lives := 1; lives < 60; lives++ {
			dir := t.TempDir()
			out, cur := filepath.Join(dir, "out"), filepath.Join(dir, "cursor")
			deaths := 0
			for {
				left := lives + deaths // each life is a little longer, so that it ends
				err := follow(mortalDisk{left: &left}, out, cur, format, records, perCommit)
				if err == nil {
					break
				}
				if !errors.Is(err, errKilled) {
					t.Fatalf("%s, %d calls: %v", format, lives, err)
				}
				deaths++
			}
			got, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			if string(got) != want {
				t.Fatalf("%s, killed %d times from call %d on: the output has %d bytes, want %d", format, deaths, lives, len(got), len(want))
			}
			if lives == 1 && deaths < 10 {
				t.Fatalf("only %d deaths; the disk is immortal", deaths)
			}
		}
	}
}

func follow(d exportDisk, out, cur string, format Format, records, perCommit int) error {
	o, err := openOutput(d, out, cur, format)
	if err != nil {
		return err
	}
	defer o.Abandon() // a killed process does not even that
	if next := o.Next(); next > 0 {
		if err := o.Continues(sample(next - 1)); err != nil {
			return err
		}
	}
	for i := o.Next(); i < uint64(records); i++ {
		if err := o.Write(sample(i)); err != nil {
			return err
		}
		if i%uint64(perCommit) == 0 {
			if err := o.Commit(); err != nil {
				return err
			}
		}
	}
	return o.Commit()
}

func TestOutputsAreRefused(t *testing.T) {
	dir := t.TempDir()
	path := func(name string) string { return filepath.Join(dir, name) }
	write := func(name, text string) {
		if err := os.WriteFile(path(name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := follow(osDisk{}, path("good"), path("good.cursor"), JSONL, 10, 3); err != nil {
		t.Fatal(err)
	}
	write("something", "something")
	write("garbage.cursor", "garbage")
	write("empty", "")
	good, err := os.ReadFile(path("good.cursor"))
	if err != nil {
		t.Fatal(err)
	}
	write("short.cursor", string(good))
	write("short", "{}")
	for name, c := range map[string]struct {
		out, cursor string
		format      Format
		category    error
	}{
		"there, no cursor":     {"something", "", JSONL, fault.ErrConflict},
		"there, fresh cursor":  {"something", "fresh.cursor", JSONL, fault.ErrConflict},
		"empty, no cursor":     {"empty", "", JSONL, fault.ErrConflict},
		"no cursor's text":     {"new", "garbage.cursor", JSONL, fault.ErrInvalid},
		"another format":       {"good", "good.cursor", CSV, fault.ErrInvalid},
		"shorter than it says": {"short", "short.cursor", JSONL, fault.ErrConflict},
		"no directory":         {"no/out", "", JSONL, fault.ErrUnavailable},
	} {
		cursor := ""
		if c.cursor != "" {
			cursor = path(c.cursor)
		}
		if _, err := Open(path(c.out), cursor, c.format, nil); !errors.Is(err, c.category) {
			t.Errorf("%s: %v", name, err)
		}
	}
	o, err := Open(path("good"), path("good.cursor"), JSONL, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer o.Abandon()
	other := sample(9)
	other.Package = "other"
	if err := o.Continues(other); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("another log is gone on with: %v", err)
	}
	if err := o.Continues(sample(9)); err != nil || o.Next() != 10 {
		t.Errorf("the same log is not gone on with: %v, next %d", err, o.Next())
	}
	if _, err := Open(path("good"), path("good.cursor"), JSONL, nil); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("two exports have one file: %v", err)
	}
}

// TestAFullDisk: what could not be written is said, and nothing of it counts.
func TestAFullDisk(t *testing.T) {
	if err := write("/dev/full"); err == nil || !strings.Contains(fmt.Sprint(err), "can't go on") {
		t.Errorf("a full disk: %v", err)
	}
}

func write(path string) error {
	o := &Output{disk: osDisk{}, format: JSONL, path: path}
	device, err := os.OpenFile(path, os.O_RDWR, 0) // no export opens one
	if err != nil {
		return err
	}
	f := &osFile{File: device}
	defer f.Close()
	o.file = f
	return errors.Join(o.Write(sample(1)), o.Commit())
}

// TestNoLinkOfASandboxIsFollowed: an export that goes on by itself, as root, writes nothing through
// a link that a sandbox left in the place of its output or cursor, or above them. Where no sandbox
// could write, a link is the person's.
func TestNoLinkOfASandboxIsFollowed(t *testing.T) {
	const own = "the host's own"
	for name, c := range map[string]struct {
		lay     func(dir, victim string) error
		follows bool
	}{
		"the output":   {lay: func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "out")) }},
		"a new output": {lay: func(dir, victim string) error { return os.Symlink(victim+"-new", filepath.Join(dir, "out")) }},
		"the cursor":   {lay: func(dir, victim string) error { return os.Symlink(victim, filepath.Join(dir, "cursor")) }},
		"a new cursor": {lay: func(dir, victim string) error { return os.Symlink(victim+"-new", filepath.Join(dir, "cursor")) }},
		"the directory": {lay: func(dir, victim string) error {
			return errors.Join(os.Remove(dir), os.Symlink(filepath.Dir(victim), dir))
		}},
		"a pipe":  {lay: func(dir, _ string) error { return syscall.Mkfifo(filepath.Join(dir, "out"), 0o600) }},
		"nothing": {lay: func(string, string) error { return nil }, follows: true},
	} {
		t.Run(name, func(t *testing.T) {
			shared, host := t.TempDir(), t.TempDir()
			victim := filepath.Join(host, "victim")
			dir := filepath.Join(shared, "exports")
			if err := errors.Join(os.WriteFile(victim, []byte(own), 0o600), os.Mkdir(dir, 0o700), c.lay(dir, victim)); err != nil {
				t.Fatal(err)
			}
			trees := []hostpath.Tree{treeOf(t, shared)}
			o, err := Open(filepath.Join(dir, "out"), filepath.Join(dir, "cursor"), JSONL, trees)
			if err == nil {
				err = errors.Join(o.Write(sample(0)), o.Close())
			}
			if (err == nil) != c.follows {
				t.Errorf("%v", err)
			}
			names, err := os.ReadDir(host)
			if text, read := os.ReadFile(victim); read != nil || string(text) != own || err != nil || len(names) != 1 {
				t.Errorf("the host has %v, and %q (%v)", names, text, errors.Join(read, err))
			}
		})
	}
	host := t.TempDir() // the control
	if err := os.Symlink(filepath.Join(host, "real"), filepath.Join(host, "out")); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(host, "real"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	o, err := Open(filepath.Join(host, "out"), filepath.Join(host, "cursor"), JSONL, nil)
	if err != nil {
		t.Fatalf("a person's own link: %v", err)
	}
	if err := errors.Join(o.Write(sample(0)), o.Close()); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(host, "real")); err != nil || len(text) == 0 {
		t.Errorf("through a person's own link came %q (%v)", text, err)
	}
}

func treeOf(t *testing.T, dir string) hostpath.Tree {
	t.Helper()
	p, err := hostpath.Resolve(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	return hostpath.Tree{Path: p.Name, ID: p.ID}
}
