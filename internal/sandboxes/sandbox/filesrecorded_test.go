package sandbox_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
)

// transfers are the records of clients' files, in order.
func (d *daemon) transfers(t *testing.T) []audit.Record {
	t.Helper()
	var all []audit.Record
	for r, err := range d.log.Records(t.Context(), audit.Filter{Kinds: []audit.Kind{audit.KindFile}}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, r)
	}
	return all
}

// folder makes a directory in a sandbox's root, which anybody there may write. Its result gives,
// for a name in it, the path inside and the one on the host.
func (d *daemon) folder(t *testing.T, id string) (inside, outside func(name string) string) {
	t.Helper()
	dir := d.world.path("roots", id, "d")
	must(t, errors.Join(os.MkdirAll(dir, 0o755), os.Chmod(dir, 0o777)))
	return func(name string) string { return "/d/" + name }, func(name string) string { return filepath.Join(dir, name) }
}

// write and read are what both wires do with a file.
func (d *daemon) write(t *testing.T, id, path string, content io.Reader) error {
	t.Helper()
	conn, _, err := d.OpenFile(t.Context(), id, channel.File{Op: channel.FileWrite, Path: path, User: "root"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = channel.WriteFile(conn, content, nil)
	return err
}

func (d *daemon) read(t *testing.T, id, path string, to io.Writer) error {
	t.Helper()
	conn, info, err := d.OpenFile(t.Context(), id, channel.File{Op: channel.FileRead, Path: path, User: "root"})
	if err != nil {
		return err
	}
	defer conn.Close()
	_, err = channel.NewFileReader(conn, info.Size).WriteTo(to)
	return err
}

// breaking is content that breaks off.
type breaking struct{ io.Reader }

var errBroke = errors.New("it broke off")

func (b breaking) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	if errors.Is(err, io.EOF) {
		err = errBroke
	}
	return n, err
}

// TestFilesAreOnRecord: each file that a client writes, reads, moves or removes, and each directory that it
// makes, has a begin and an end, with who, which way, the path, the size and the digest of what went over. Of names that
// are only looked at there is none.
func TestFilesAreOnRecord(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	id := d.create(t, sandbox.Request{}).Info().ID
	content := bytes.Repeat([]byte("0123456789abcdef"), 20_000) // several frames
	sum := sha256.Sum256(content)
	digest := hex.EncodeToString(sum[:])
	inside, outside := d.folder(t, id)
	file := func(f channel.File) error {
		f.User = "root"
		_, err := d.File(t.Context(), id, f)
		return err
	}
	for _, c := range []struct {
		name string
		do   func(path string) error
		fail bool
		has  string // what lies at the path before; "": nothing
		want audit.Record
	}{
		{"write", func(path string) error { return d.write(t, id, path, bytes.NewReader(content)) }, false, "", audit.Record{
			Outcome: audit.Finished, Size: int64(len(content)), Detail: map[string]string{"operation": "write", "direction": "in", "content_sha256": digest},
		}},
		{"write of nothing", func(path string) error { return d.write(t, id, path, strings.NewReader("")) }, false, "old", audit.Record{
			Outcome: audit.Finished, Detail: map[string]string{"operation": "write", "direction": "in", "content_sha256": "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"},
		}},
		{"write that breaks off", func(path string) error { return d.write(t, id, path, breaking{bytes.NewReader(content)}) }, true, "", audit.Record{
			Outcome: audit.Aborted, Detail: map[string]string{"operation": "write", "direction": "in"},
		}},
		{"write over a directory", func(string) error { return d.write(t, id, "/d", bytes.NewReader(content)) }, true, "", audit.Record{
			Outcome: audit.Failed, Detail: map[string]string{"operation": "write", "direction": "in"},
		}},
		{"read", func(path string) error { return d.read(t, id, path, io.Discard) }, false, string(content), audit.Record{
			Outcome: audit.Finished, Size: int64(len(content)), Detail: map[string]string{"operation": "read", "direction": "out", "content_sha256": digest},
		}},
		{"read that nobody takes", func(path string) error {
			conn, _, err := d.OpenFile(t.Context(), id, channel.File{Op: channel.FileRead, Path: path, User: "root"})
			if err == nil {
				_, _ = conn.Close(), conn.Close() // more than once, as handlers do
			}
			return err
		}, false, string(content), audit.Record{Outcome: audit.Aborted, Detail: map[string]string{"operation": "read", "direction": "out"}}},
		{"read of nothing", func(path string) error { return d.read(t, id, path, io.Discard) }, true, "", audit.Record{
			Outcome: audit.Failed, Detail: map[string]string{"operation": "read", "direction": "out"},
		}},
		{"move", func(path string) error {
			return file(channel.File{Op: channel.FileMove, Path: path, To: path + ".new"})
		}, false, "x", audit.Record{
			Outcome: audit.Finished, Detail: map[string]string{"operation": "move"},
		}},
		{"remove", func(path string) error { return file(channel.File{Op: channel.FileRemove, Path: path}) }, false, "x", audit.Record{
			Outcome: audit.Finished, Detail: map[string]string{"operation": "remove"},
		}},
		{"remove of nothing", func(path string) error { return file(channel.File{Op: channel.FileRemove, Path: path}) }, true, "", audit.Record{
			Outcome: audit.Failed, Detail: map[string]string{"operation": "remove"},
		}},
		{"stat", func(path string) error { return file(channel.File{Op: channel.FileStat, Path: path}) }, false, "x", audit.Record{}},
		{"mkdir", func(path string) error { return file(channel.File{Op: channel.FileMkdir, Path: path}) }, false, "", audit.Record{
			Outcome: audit.Finished, Detail: map[string]string{"operation": "mkdir"},
		}},
		{"mkdir of what is there", func(path string) error { return file(channel.File{Op: channel.FileMkdir, Path: path}) }, true, "x", audit.Record{
			Outcome: audit.Failed, Detail: map[string]string{"operation": "mkdir"},
		}},
		{"list", func(string) error {
			conn, _, err := d.OpenFile(t.Context(), id, channel.File{Op: channel.FileList, Path: "/d", User: "root", Depth: 1})
			if err != nil {
				return err
			}
			defer conn.Close()
			return channel.ReadList(conn, func([]channel.FileInfo) error { return nil })
		}, false, "", audit.Record{}},
	} {
		t.Run(c.name, func(t *testing.T) {
			before := len(d.transfers(t))
			name := strings.ReplaceAll(c.name, " ", "-")
			path := inside(name)
			if c.has != "" {
				must(t, os.WriteFile(outside(name), []byte(c.has), 0o600))
			}
			if err := c.do(path); (err != nil) != c.fail {
				t.Fatalf("it failed: %v", err)
			}
			got := d.transfers(t)[before:]
			if c.want.Outcome == "" {
				if len(got) != 0 {
					t.Errorf("there are records: %+v", got)
				}
				return
			}
			if len(got) != 2 || got[0].Outcome != audit.Started || got[1].Outcome != c.want.Outcome {
				t.Fatalf("the records are %+v", got)
			}
			if got[1].Detail["began_seq"] != strconv.FormatUint(got[0].Seq, 10) {
				t.Errorf("its end is of record %s, and not of %d", got[1].Detail["began_seq"], got[0].Seq)
			}
			if c.name != "write over a directory" && (got[0].File != path || got[1].File != path) {
				t.Errorf("it is of %q and %q, and not of %q", got[0].File, got[1].File, path)
			}
			for _, r := range got {
				if r.Sandbox != id || r.User != "ann" || r.Run == "" || r.Detail["as"] != "root" || (r.Reason == "") != (r.Outcome == audit.Started || r.Outcome == audit.Finished) {
					t.Errorf("the record is %+v", r)
				}
				for _, key := range []string{"operation", "direction"} {
					if r.Detail[key] != c.want.Detail[key] {
						t.Errorf("%s is %q in %+v", key, r.Detail[key], r)
					}
				}
			}
			if got[1].Detail["content_sha256"] != c.want.Detail["content_sha256"] || c.want.Outcome == audit.Finished && got[1].Size != c.want.Size {
				t.Errorf("%d bytes with the digest %q went over", got[1].Size, got[1].Detail["content_sha256"])
			}
			if c.name == "write" {
				if text, err := os.ReadFile(outside(name)); err != nil || !bytes.Equal(text, content) {
					t.Errorf("what lies there is another: %v", err)
				}
			}
			if c.name == "move" && got[1].Detail["to"] != path+".new" {
				t.Errorf("it went to %q", got[1].Detail["to"])
			}
		})
	}
}

// TestNoFileWithoutItsRecord: where the begin can't be written nothing is done. The control is
// the same with a log that takes it.
func TestNoFileWithoutItsRecord(t *testing.T) {
	t.Parallel()
	for _, whole := range []bool{true, false} {
		w := newWorld(t)
		d := w.daemon(t)
		id := d.create(t, sandbox.Request{}).Info().ID
		inside, outside := d.folder(t, id)
		for _, name := range []string{"read", "removed", "moved"} {
			must(t, os.WriteFile(outside(name), []byte("old"), 0o600))
		}
		if !whole {
			must(t, d.log.Close())
		}
		var out bytes.Buffer
		_, removing := d.File(t.Context(), id, channel.File{Op: channel.FileRemove, Path: inside("removed"), User: "root"})
		_, moving := d.File(t.Context(), id, channel.File{Op: channel.FileMove, Path: inside("moved"), To: inside("elsewhere"), User: "root"})
		_, making := d.File(t.Context(), id, channel.File{Op: channel.FileMkdir, Path: inside("made"), User: "root"})
		for what, err := range map[string]error{
			"write": d.write(t, id, inside("written"), strings.NewReader("new")), "read": d.read(t, id, inside("read"), &out), "remove": removing, "move": moving, "mkdir": making,
		} {
			if (err == nil) != whole {
				t.Errorf("with a log that is whole (%v) the %s: %v", whole, what, err)
			}
		}
		for name, is := range map[string]bool{"written": whole, "elsewhere": whole, "made": whole, "removed": !whole, "moved": !whole} {
			if _, err := os.Stat(outside(name)); (err == nil) != is {
				t.Errorf("with a log that is whole (%v) %s: %v", whole, name, err)
			}
		}
		if (out.String() == "old") != whole {
			t.Errorf("with a log that is whole (%v) %q was read", whole, out.String())
		}
		if !whole { // for the test's end, which puts ends on record
			reopened, err := w.start(t.Context())
			must(t, err)
			*d = *reopened
		}
	}
}

// TestFilesOfASandboxThatEnds: what is on its way when the sandbox is taken away has one end, before
// the sandbox's own.
func TestFilesOfASandboxThatEnds(t *testing.T) {
	t.Parallel()
	d := newWorld(t).daemon(t)
	id := d.create(t, sandbox.Request{}).Info().ID
	inside, outside := d.folder(t, id)
	must(t, os.WriteFile(outside("big"), make([]byte, 4<<20), 0o600))
	conn, _, err := d.OpenFile(t.Context(), id, channel.File{Op: channel.FileRead, Path: inside("big"), User: "root"})
	must(t, err)
	if begun := d.transfers(t); len(begun) != 1 || begun[0].Outcome != audit.Started {
		t.Fatalf("INCONCLUSIVE: %+v", begun)
	}
	must(t, d.Destroy(t.Context(), id))
	_ = conn.Close()
	got := d.transfers(t)
	if len(got) != 2 || got[1].Outcome != audit.Aborted || got[1].Reason == "" {
		t.Fatalf("the records are %+v", got)
	}
	for r, err := range d.log.Records(t.Context(), audit.Filter{Sandbox: id, FromSeq: got[1].Seq + 1}) {
		if err != nil || r.Kind != audit.KindSandbox {
			t.Errorf("behind it there is %+v, %v", r, err)
		}
	}
}
