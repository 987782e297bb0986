package templatebuild_test

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/cofferdam-dev/cofferdam/internal/kit/channel"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/engine"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/sandbox"
	"github.com/cofferdam-dev/cofferdam/internal/sandboxes/templatebuild"
)

const hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"

// upload sends files of ann's.
func (s *shop) upload(text string) error {
	s.t.Helper()
	_, ticket, err := s.builder.Link(owner(ann), hash)
	if err != nil {
		s.t.Fatal(err)
	}
	return s.builder.Receive(ticket, strings.NewReader(text))
}

// brought uploads what the test needs there.
func (s *shop) brought(text string) {
	s.t.Helper()
	if err := s.upload(text); err != nil {
		s.t.Fatal(err)
	}
}

// copies are the steps of a build with one copy.
var copies = []templatebuild.Step{{Type: "COPY", Args: []string{"a", "b"}, Hash: hash}}

// TestABuild: steps are done one by one in the setting that those before made, and what
// came of it is a snapshot with the names and that setting; all of it is on record.
func TestABuild(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.answer = func(c sandbox.Command) (channel.Exit, string) {
		return channel.Exit{}, "output of " + c.Argv[len(c.Argv)-1] + "\n"
	}
	s.brought("a tar")
	b, log := s.make(templatebuild.Recipe{Base: "debian", Steps: []templatebuild.Step{
		{Type: "ENV", Args: []string{"A", "1", "B", "2"}},
		{Type: "RUN", Args: []string{"first"}},
		{Type: "WORKDIR", Args: []string{"sub"}},
		{Type: "USER", Args: []string{"root"}},
		{Type: "ENV", Args: []string{"A", "3"}},
		{Type: "COPY", Args: []string{"dir/*.txt", "to", "user:user", "0644"}, Hash: hash},
		{Type: "RUN", Args: []string{"second", "user"}},
		{Type: "RUN", Args: []string{"pip install -U x", "root"}},
		{Type: "RUN", Args: []string{"pip install x; id", "root"}},
		{Type: "RUN", Args: []string{"npm install x", "root"}},
		{Type: "RUN", Args: []string{"pip install --user -r x.txt", "user"}},
	}})
	if b.Status != templatebuild.Ready || b.Step != "" {
		t.Fatalf("%+v\n%s", b, log)
	}
	first, unpack, second := s.commands[0], s.commands[1], s.commands[2]
	if first.Env["A"] != "1" || first.Dir != "/home/user" || first.User != "" || first.Judged != "first" {
		t.Errorf("the first step: %+v", first)
	}
	if second.Env["A"] != "3" || second.Env["B"] != "2" || second.Dir != "/home/user/sub" || second.User != "" {
		t.Errorf("the last step: %+v", second)
	}
	if want := []string{"/var/tmp/.upload", "dir", "true", "/home/user/sub/to", "0644"}; !slices.Equal(unpack.Argv[4:], want) || unpack.User != "" || s.written["/var/tmp/.upload"] != "a tar" {
		t.Errorf("the copy: %v as %q of %v", unpack.Argv[4:], unpack.User, s.written)
	}
	if s.commands[6].Judged != "pip install -r x.txt" || s.commands[6].User != "" || !strings.Contains(log, "[11/11] RUN pip install --user -r x.txt") {
		t.Errorf("an install for the user is %q\n%s", s.commands[6].Judged, log)
	}
	if s.commands[3].User != "" || s.commands[4].User != "root" || s.commands[5].User != "root" {
		t.Errorf("an install is %q's, another command %q's", s.commands[3].User, s.commands[4].User)
	}
	if !strings.Contains(log, "output of first") || !strings.Contains(log, "[7/11] RUN second") {
		t.Errorf("the log: %s", log)
	}
	if last := s.files[len(s.files)-1]; last.Op != channel.FileRemove || last.Path != "/var/tmp/.upload" || last.User != "root" {
		t.Errorf("what was brought is left in the template: the last file call was %+v", last)
	}
	s.nothingLeft(b.Snapshot)
	kept, err := s.Snapshots(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	snap := kept[0]
	if !slices.Equal(snap.Names(), []string{"app", "app:v1"}) || snap.Contents != engine.ContentsFiles || snap.Built.Build != b.ID || snap.Built.Template != tpl ||
		snap.Built.User != "root" || snap.Built.Workdir != "/home/user/sub" || snap.Built.Env["A"] != "3" {
		t.Errorf("the result: %+v %+v", snap, snap.Built)
	}
	stages := []string{}
	for _, r := range s.records {
		stages = append(stages, string(r.Stage)+r.Step)
	}
	if want := []string{"begun", "step1", "step2", "step3", "step4", "step5", "step6", "step7", "step8", "step9", "step10", "step11", "ready"}; !slices.Equal(stages, want) {
		t.Errorf("records: %v", stages)
	}
	again, _ := s.make(templatebuild.Recipe{Base: "debian"}) // takes both names, so that nothing leads to the first
	s.nothingLeft(again.Snapshot)
}

// TestAnUploadThatIsGone: a step may have removed what was brought, and nothing is amiss.
func TestAnUploadThatIsGone(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.brought("a tar")
	s.removing = fault.New(fault.ErrNotFound, "there is no such file")
	if b, log := s.make(templatebuild.Recipe{Steps: copies}); b.Status != templatebuild.Ready {
		t.Errorf("%+v\n%s", b, log)
	}
}

// TestWhatFails: a build that fails says at which step and why, and leaves nothing.
func TestWhatFails(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		recipe templatebuild.Recipe
		before func(s *shop)
		step   string
		says   string
	}{
		"a command":            {recipe: templatebuild.Recipe{Steps: runs("one", "false")}, step: "2", says: "exit code 3: why"},
		"what the rules deny":  {recipe: templatebuild.Recipe{Steps: runs("forbidden")}, step: "1", says: "the policy forbids it"},
		"no such step":         {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "FROM"}}}, step: "1", says: "no step"},
		"no command":           {recipe: templatebuild.Recipe{Steps: runs("one", " ")}, step: "2", says: "without a command"},
		"no such user":         {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "USER", Args: []string{"; exit 1"}}}}, step: "1", says: "no user"},
		"another's command":    {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "RUN", Args: []string{"x y", "www-data"}}}}, step: "1", says: "failed to run command 'x y': command failed: unauthenticated: invalid username: 'www-data': there is no user"},
		"no variable":          {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "ENV", Args: []string{"a b", "1"}}}}, step: "1", says: "variable"},
		"many variables":       {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{variables(1, 1_000), variables(1, 1_000), variables(1_001, 1)}}, step: "3", says: "more than 1000 variables"},
		"half a variable":      {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "ENV", Args: []string{"A"}}}}, step: "1", says: "in turn"},
		"no directory":         {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "WORKDIR"}}}, step: "1", says: "without a directory"},
		"no upload":            {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "COPY", Args: []string{"a", "b"}, Hash: hash}}}, step: "1", says: "were not uploaded"},
		"no hash":              {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "COPY", Args: []string{"a", "b"}, Hash: "../x"}}}, step: "1", says: "SHA-256"},
		"a source outside":     {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "COPY", Args: []string{"a/../../x", "b"}, Hash: hash}}}, step: "1", says: "not in the template's directory"},
		"no mode":              {recipe: templatebuild.Recipe{Steps: []templatebuild.Step{{Type: "COPY", Args: []string{"a", "b", "", "u+x"}, Hash: hash}}}, step: "1", says: "octal"},
		"too many steps":       {recipe: templatebuild.Recipe{Steps: runs(make([]string, 201)...)}, step: "base", says: "at most 200"},
		"too long a step":      {recipe: templatebuild.Recipe{Steps: runs(strings.Repeat("x", 65<<10))}, step: "1", says: "65536"},
		"a start command":      {recipe: templatebuild.Recipe{Start: "false", Ready: "false too"}, step: "finalize", says: "the start command failed"},
		"no sandbox":           {recipe: templatebuild.Recipe{}, step: "base", says: "no room", before: func(s *shop) { s.FailCreate(fault.Exhausted(0, "no room")) }},
		"no snapshot":          {recipe: templatebuild.Recipe{}, step: "finalize", says: "no room", before: func(s *shop) { s.keeping = fault.Exhausted(0, "no room") }},
		"an upload that stays": {recipe: templatebuild.Recipe{Steps: copies}, step: "1", says: "not removed", before: func(s *shop) { s.brought("a tar"); s.removing = fault.New(fault.ErrForbidden, "it is not removed") }},
		"no record of a begin": {recipe: templatebuild.Recipe{Steps: runs("one")}, step: "base", says: "can't be written", before: func(s *shop) { s.unlogged = "begun" }},
		"no record of a step":  {recipe: templatebuild.Recipe{Steps: runs("one")}, step: "1", says: "can't be written", before: func(s *shop) { s.unlogged = "step" }},
		"no record of the end": {recipe: templatebuild.Recipe{}, step: "finalize", says: "can't be written", before: func(s *shop) { s.unlogged = "ready" }},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			s.answer = func(c sandbox.Command) (channel.Exit, string) {
				if strings.HasPrefix(c.Argv[len(c.Argv)-1], "false") {
					return channel.Exit{Code: 3}, "before\nwhy\n"
				}
				return channel.Exit{}, ""
			}
			if c.before != nil {
				c.before(s)
			}
			b, log := s.make(c.recipe)
			if b.Status != templatebuild.Failed || b.Step != c.step || !strings.Contains(b.Reason, c.says) {
				t.Errorf("%+v\n%s", b, log)
			}
			s.nothingLeft()
			if n := len(s.records); n == 0 || s.records[n-1].Stage != "failed" || s.records[n-1].Step != c.step {
				t.Errorf("records: %+v", s.records)
			}
		})
	}
}

// TestBounds of what a token may have at once.
func TestBounds(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	var ids []string
	for range 5 {
		b := s.begin()
		ids = append(ids, b.ID)
		s.start(b.ID, templatebuild.Recipe{Steps: runs("wait " + b.ID)})
	}
	statuses := func() (building int) {
		for _, id := range ids {
			if b, _ := s.look(id); b.Status == templatebuild.Building {
				building++
			}
		}
		return building
	}
	for statuses() < 4 {
		moment()
	}
	if n := statuses(); n != 4 {
		t.Errorf("%d builds of a token at once", n)
	}
	if err := s.builder.Start(tpl, ids[0], request(ids[0]), "/", templatebuild.Recipe{}); !errors.Is(err, fault.ErrConflict) {
		t.Errorf("a build that was begun twice: %v", err)
	}
	close(s.hold)
	for _, id := range ids {
		if b := s.await(id); b.Status != templatebuild.Ready {
			t.Errorf("%+v", b)
		}
	}
	for range 32 {
		s.begin()
	}
	if _, err := s.builder.Begin(owner(ann), tpl, "app", []string{"app"}); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("too many that wait: %v", err)
	}
	if _, err := s.builder.Begin(owner(bob), tpl, "app", []string{"app"}); err != nil {
		t.Errorf("another token's: %v", err)
	}
	if _, err := s.builder.Begin(owner(bob), tpl, "app", nil); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no name: %v", err)
	}
}

// TestALogHasAnEnd: of what commands write so much is kept, and what the builder says
// always.
func TestALogHasAnEnd(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	s.answer = func(c sandbox.Command) (channel.Exit, string) {
		return channel.Exit{}, strings.Repeat(c.Argv[len(c.Argv)-1]+"\n", 6_000) + strings.Repeat("y", 10_000)
	}
	b, log := s.make(templatebuild.Recipe{Steps: runs("x", "z")})
	if n := strings.Count(log, "\n"); n > 5_010 || strings.Contains(log, "\nz\n") || !strings.Contains(log, "is not kept") || !strings.Contains(log, "[2/2] RUN z") {
		t.Errorf("%d lines: ... %s", n, log[max(0, len(log)-300):])
	}
	if _, entries, err := s.builder.Look(ann, tpl, b.ID, 10, 7); err != nil || len(entries) != 7 {
		t.Errorf("a page: %d, %v", len(entries), err)
	}
	if _, entries, err := s.builder.Look(ann, tpl, b.ID, 1<<40, 7); err != nil || len(entries) != 0 {
		t.Errorf("behind the end: %d, %v", len(entries), err)
	}
}

// TestOfAnother: a token sees no build of another's, and finds no upload of another's.
func TestOfAnother(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b := s.begin()
	if err := s.upload("ann's"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := s.builder.Look(bob, tpl, b.ID, 0, 1); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("bob sees it: %v", err)
	}
	if _, _, err := s.builder.Look(ann, "tpl1", b.ID, 0, 1); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("under another template: %v", err)
	}
	req := request(b.ID)
	req.Owner = owner(bob)
	if err := s.builder.Start(tpl, b.ID, req, "/", templatebuild.Recipe{}); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("bob starts it: %v", err)
	}
	if present, _, err := s.builder.Link(owner(bob), hash); present || err != nil {
		t.Errorf("bob finds ann's upload: %v, %v", present, err)
	}
	if present, _, err := s.builder.Link(owner(ann), hash); !present || err != nil {
		t.Errorf("ann does not find hers: %v, %v", present, err)
	}
	if s.builder.Known(bob, tpl) || !s.builder.Known(ann, tpl) {
		t.Error("whose template it is")
	}
}

// endless is a body without an end.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

// TestUploads: with a ticket, once, whole or not at all, and no more than there is room
// for.
func TestUploads(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	if err := s.builder.Receive("guessed", strings.NewReader("x")); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("without a ticket: %v", err)
	}
	if _, _, err := s.builder.Link(owner(ann), strings.ToUpper(hash)); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("no hash: %v", err)
	}
	small := sandbox.Owner{Token: ann}
	small.Quota.DiskBytes = 8 << 20
	_, ticket, err := s.builder.Link(small, hash)
	if err != nil {
		t.Fatal(err)
	}
	if token, ok := s.builder.Holder(ticket); !ok || token != ann {
		t.Errorf("the ticket is %q's: %v", token, ok)
	}
	if err := s.builder.Receive(ticket, endless{}); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("more than the quota: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(s.dir, "files", "*", "*")); len(left) != 0 {
		t.Errorf("left: %v", left)
	}
	if err := s.builder.Receive(ticket, strings.NewReader(strings.Repeat("x", 5<<20))); err != nil {
		t.Errorf("what fits: %v", err)
	}
	if err := s.builder.Receive(ticket, strings.NewReader("x")); !errors.Is(err, fault.ErrForbidden) {
		t.Errorf("twice: %v", err)
	}
	other := strings.Replace(hash, "0", "f", 1)
	if _, ticket, err = s.builder.Link(small, other); err != nil {
		t.Fatal(err)
	}
	if err := s.builder.Receive(ticket, strings.NewReader(strings.Repeat("x", 5<<20))); !errors.Is(err, fault.ErrExhausted) {
		t.Errorf("both: %v", err)
	}
	for i := 0; ; i++ {
		if _, _, err := s.builder.Link(owner(bob), fmt.Sprintf("%064x", i)); err != nil {
			if !errors.Is(err, fault.ErrExhausted) || i != 128 {
				t.Errorf("after %d tickets: %v", i, err)
			}
			break
		}
	}
}

// TestARevokedToken: its builds end, and leave nothing.
func TestARevokedToken(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	b := s.begin()
	s.start(b.ID, templatebuild.Recipe{Steps: runs("wait")})
	for len(s.List()) == 0 {
		moment()
	}
	close(s.revoked)
	if b = s.await(b.ID); b.Status != templatebuild.Failed || !strings.Contains(b.Reason, "revoked") {
		t.Errorf("%+v", b)
	}
	s.nothingLeft()
	close(s.hold)
}

// TestAfterARestart: builds that had ended are told as they were, with their logs; what
// was being built has ended with a reason, and its sandbox is taken away; but of a
// result that is there the build is a good one.
func TestAfterARestart(t *testing.T) {
	t.Parallel()
	s := newShop(t)
	good, log := s.make(templatebuild.Recipe{Steps: runs("one")})
	waits := s.begin()
	// As a daemon that was killed leaves them: one in the middle, one at the very end.
	dead, done := s.begin(), s.begin()
	for _, b := range []templatebuild.Build{dead, done} {
		path := filepath.Join(s.dir, "records", b.ID+".json")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(strings.Replace(string(data), `"waiting"`, `"building"`, 1)), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	box, err := s.Create(t.Context(), request(dead.ID))
	if err != nil {
		t.Fatal(err)
	}
	other, err := s.Create(t.Context(), sandbox.Request{Owner: owner(ann)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Life.Keep(t.Context(), other.Info().ID, sandbox.Keep{Names: []string{"x"}, Built: &sandbox.Built{Build: done.ID, Template: tpl}}); err != nil {
		t.Fatal(err)
	}
	s.open()
	for _, b := range []templatebuild.Build{waits, dead} {
		if now, _ := s.look(b.ID); now.Status != templatebuild.Failed || !strings.Contains(now.Reason, "the daemon ended") {
			t.Errorf("%+v", now)
		}
	}
	if now, _ := s.look(done.ID); now.Status != templatebuild.Ready || now.Snapshot == "" {
		t.Errorf("%+v", now)
	}
	if now, again := s.look(good.ID); now.Status != templatebuild.Ready || again != log || log == "" {
		t.Errorf("%+v, %q", now, again)
	}
	for {
		if _, err := s.Get(box.Info().ID); errors.Is(err, fault.ErrNotFound) {
			break
		}
		moment()
	}
	if _, err := s.Get(other.Info().ID); err != nil {
		t.Errorf("a sandbox of a client's was taken away: %v", err)
	}
}

// variables is a step that sets so many variables.
func variables(first, count int) templatebuild.Step {
	s := templatebuild.Step{Type: "ENV"}
	for i := range count {
		s.Args = append(s.Args, fmt.Sprint("A", first+i), "1")
	}
	return s
}

// TestRootsFilesInAHome: root of a sandbox may not write where only the user may, so the user opens the directory for as long, and
// closes it again. A build in which one of that goes wrong fails.
func TestRootsFilesInAHome(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		fails  string // the mode that can't be set
		status templatebuild.Status
		want   []string
	}{
		"it goes well":       {"", templatebuild.Ready, []string{"unpack root", "o+w ", "unpack root", "o-w "}},
		"it can't be opened": {"o+w", templatebuild.Failed, []string{"unpack root", "o+w "}},
		"it stays open":      {"o-w", templatebuild.Failed, []string{"unpack root", "o+w ", "unpack root", "o-w "}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newShop(t)
			var got []string
			s.answer = func(did sandbox.Command) (channel.Exit, string) {
				switch {
				case did.Argv[0] != "chmod":
					if got = append(got, "unpack "+did.User); len(got) == 1 {
						return channel.Exit{Code: 77}, ""
					}
				case did.Argv[3] != "/home/user/to":
					t.Errorf("changed is %s", did.Argv[3])
				default:
					if got = append(got, did.Argv[1]+" "+did.User); did.Argv[1] == c.fails {
						return channel.Exit{Code: 1}, ""
					}
				}
				return channel.Exit{}, ""
			}
			s.brought("a tar")
			b, log := s.make(templatebuild.Recipe{Base: "debian", Steps: []templatebuild.Step{{Type: "COPY", Args: []string{"dir", "to", "root"}, Hash: hash}}})
			if b.Status != c.status || !slices.Equal(got, c.want) {
				t.Errorf("%s after %q, want %s after %q\n%s", b.Status, got, c.status, c.want, log)
			}
		})
	}
}
