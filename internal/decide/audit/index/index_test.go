package index_test

import (
	"context"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit/index"
)

// memory is a log in memory that counts how often each record was read.
type memory struct {
	mu      sync.Mutex
	records []audit.Record
	grown   chan struct{}
	reads   int
	hidden  uint64 // records before are elsewhere
}

func (m *memory) add(r audit.Record) audit.Record {
	m.mu.Lock()
	defer m.mu.Unlock()
	r.Seq = uint64(len(m.records))
	r.Time = time.Date(2026, 11, 1, 0, 0, 0, 0, time.UTC).Add(time.Duration(r.Seq) * time.Second)
	m.records = append(m.records, r)
	if m.grown != nil {
		close(m.grown)
		m.grown = nil
	}
	return r
}

func (m *memory) End() (uint64, <-chan struct{}) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.grown == nil {
		m.grown = make(chan struct{})
	}
	return uint64(len(m.records)), m.grown
}

func (m *memory) Records(_ context.Context, f audit.Filter) iter.Seq2[audit.Record, error] {
	m.mu.Lock()
	records := slices.Clone(m.records)
	m.mu.Unlock()
	return func(yield func(audit.Record, error) bool) {
		for _, r := range records {
			if r.Seq < f.FromSeq || r.Seq < m.hidden || f.Seqs != nil && !slices.Contains(f.Seqs, r.Seq) {
				continue
			}
			m.mu.Lock()
			m.reads++
			m.mu.Unlock()
			if !yield(r, nil) {
				return
			}
		}
	}
}

// fill adds records of three runs.
func fill(m *memory, n int) {
	for i := range n {
		m.add(audit.Record{
			Kind: audit.KindPackage, Outcome: audit.Served, Run: fmt.Sprintf("run-%d", i%3), Sandbox: fmt.Sprintf("sb-%d", i%3),
			Policy: "sha256:aa", Ecosystem: "python", Package: fmt.Sprintf("p%d", i%7), InstalledVersion: "1.0",
			SourceURL: "https://files.example/p.whl", User: "ada", ResolvedBy: "allowlist", RequestID: fmt.Sprintf("rq%06d", i),
		})
	}
}

func selected(t *testing.T, x *index.Index, f index.Filter) []uint64 {
	t.Helper()
	var seqs []uint64
	err := x.View(t.Context(), func(v *index.View) (err error) {
		seqs, _, err = v.Select(t.Context(), f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return seqs
}

func of(field string, values ...string) index.Filter {
	return index.Filter{Where: map[string][]string{field: values}}
}

func TestFilters(t *testing.T) {
	m := &memory{}
	exit, other := 3, 0
	m.add(audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r1", Sandbox: "s1", Policy: "sha256:aa", User: "ada", Task: "Build it"})
	m.add(audit.Record{Kind: audit.KindCommand, Outcome: audit.Started, Run: "r1", Sandbox: "s1", Command: []string{"pip", "install", "Rich"}})
	m.add(audit.Record{
		Kind: audit.KindPackage, Outcome: audit.Served, Run: "r1", Sandbox: "s1", Ecosystem: "python", Package: "rich", RequestedVersion: ">=13",
		InstalledVersion: "13.7.1", File: "rich-13.7.1-py3-none-any.whl", SourceURL: "https://files.example/a/rich.whl", SHA256: "abcd", ResolvedBy: "approval",
		Rule: "approval", Approval: "ap-k3x9qf", RequestID: "rq1", RequestedClaimed: true,
	})
	m.add(audit.Record{Kind: audit.KindPackage, Outcome: audit.Withheld, Run: "r2", Sandbox: "s2", Package: "left-pad", Ecosystem: "node", Reason: "50% off", Withheld: []audit.WithheldRange{{Rule: "packages.sdist", Reason: "only wheels"}}})
	m.add(audit.Record{Kind: audit.KindCommand, Outcome: audit.Finished, Run: "r2", Sandbox: "s2", Exit: &exit})
	m.add(audit.Record{Kind: audit.KindCommand, Outcome: audit.Finished, Run: "r2", Sandbox: "s2", Exit: &other, Detail: map[string]string{"signal": "SIGKILL"}})
	x := index.New(filepath.Join(t.TempDir(), "i", "index.db"), m, index.Options{})
	defer x.Close()
	at := m.records[3].Time
	for name, c := range map[string]struct {
		f    index.Filter
		want []uint64
	}{
		"all":              {index.Filter{}, []uint64{0, 1, 2, 3, 4, 5}},
		"run":              {of("run", "r2"), []uint64{3, 4, 5}},
		"two runs":         {of("run", "r1", "r2"), []uint64{0, 1, 2, 3, 4, 5}},
		"unknown run":      {of("run", "r3"), nil},
		"sandbox":          {of("sandbox", "s1"), []uint64{0, 1, 2}},
		"policy":           {of("policy", "sha256:aa"), []uint64{0}},
		"policy begins":    {of("policy", "sha256:a*"), []uint64{0}},
		"ecosystem":        {of("ecosystem", "node"), []uint64{3}},
		"package":          {of("package", "rich"), []uint64{2}},
		"requested":        {of("requested", ">=13"), []uint64{2}},
		"version":          {of("version", "13.7.1"), []uint64{2}},
		"file":             {of("file", "rich-13*"), []uint64{2}},
		"source":           {of("source", "https://files.example/a/*"), []uint64{2}},
		"host":             {of("host", "https://files.example"), []uint64{2}},
		"sha256":           {of("sha256", "abcd"), []uint64{2}},
		"resolved-by":      {of("resolved-by", "approval"), []uint64{2}},
		"rule":             {of("rule", "approval"), []uint64{2}},
		"reason":           {of("reason", "50% off"), []uint64{3}},
		"request":          {of("request", "rq1"), []uint64{2}},
		"request begins":   {of("request", "rq*"), []uint64{2}},
		"approval":         {of("approval", "ap-k3x9qf"), []uint64{2}},
		"user":             {of("user", "ada"), []uint64{0}},
		"task":             {of("task", "Build it"), []uint64{0}},
		"command":          {of("command", "pip install*"), []uint64{1}},
		"kind":             {of("kind", "command"), []uint64{1, 4, 5}},
		"outcome and kind": {index.Filter{Where: map[string][]string{"outcome": {"started"}, "kind": {"command"}}}, []uint64{1}},
		"no value":         {of("run"), nil},
		"empty field":      {of("run", ""), nil},
		"text":             {index.Filter{Text: "RICH"}, []uint64{1, 2}},
		"text of details":  {index.Filter{Text: "sigkill"}, []uint64{5}},
		"text of ranges":   {index.Filter{Text: "only wheels"}, []uint64{3}},
		"text is no glob":  {index.Filter{Text: "50%"}, []uint64{3}},
		"claimed":          {index.Filter{Flags: index.FlagClaimed}, []uint64{2}},
		"exit":             {index.Filter{Exit: &exit}, []uint64{4}},
		"exit 0":           {index.Filter{Exit: &other}, []uint64{5}},
		"since":            {index.Filter{Since: at}, []uint64{3, 4, 5}},
		"until":            {index.Filter{Until: at}, []uint64{0, 1, 2}},
		"between":          {index.Filter{Since: at, Until: at.Add(time.Second)}, []uint64{3}},
		"upside down":      {index.Filter{Since: at, Until: at.Add(-time.Second)}, nil},
		"from":             {index.Filter{From: 4}, []uint64{4, 5}},
		"limit":            {index.Filter{Limit: 2}, []uint64{0, 1}},
	} {
		if got := selected(t, x, c.f); !slices.Equal(got, c.want) {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
	err := x.View(t.Context(), func(v *index.View) error {
		_, _, err := v.Select(t.Context(), of("colour", "red"))
		return err
	})
	if err == nil {
		t.Error("a field that there is not is taken")
	}
}

// TestLimitTellsOfMore: who pages has to know whether there is another page.
func TestLimitTellsOfMore(t *testing.T) {
	m := &memory{}
	fill(m, 10)
	x := index.New(filepath.Join(t.TempDir(), "index.db"), m, index.Options{})
	defer x.Close()
	for limit, want := range map[int]bool{0: false, 9: true, 10: false, 11: false} {
		err := x.View(t.Context(), func(v *index.View) error {
			_, more, err := v.Select(t.Context(), index.Filter{Limit: limit})
			if more != want {
				t.Errorf("with limit %d of 10 there are more: %t", limit, more)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestAnAnswerHasWhatTheLogHad: a question sees each record that was appended
// before it, while others are appended and the follower is at work.
func TestAnAnswerHasWhatTheLogHad(t *testing.T) {
	m := &memory{}
	x := index.New(filepath.Join(t.TempDir(), "index.db"), m, index.Options{})
	ctx, cancel := context.WithCancel(t.Context())
	var following sync.WaitGroup
	following.Go(func() { x.Follow(ctx, func(err error) { t.Error(err) }) })
	var asking sync.WaitGroup
	for range 4 {
		asking.Go(func() {
			for range 40 {
				fill(m, 1)
				end, _ := m.End()
				got := selected(t, x, index.Filter{})
				if uint64(len(got)) < end || !slices.IsSorted(got) {
					t.Errorf("the log had %d records, the answer has %d", end, len(got))
				}
			}
		})
	}
	asking.Wait()
	cancel()
	following.Wait()
	if err := x.Close(); err != nil {
		t.Error(err)
	}
	if err := x.CatchUp(t.Context()); err == nil {
		t.Error("a closed index answers")
	}
}

// TestAnIndexIsMadeAnew: whatever becomes of the file, answers are those of the log.
func TestAnIndexIsMadeAnew(t *testing.T) {
	whole := func(f func(path string, data []byte) []byte) func(*testing.T, string, *memory) {
		return func(t *testing.T, path string, _ *memory) {
			t.Helper()
			data, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(path, f(path, data), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	unsealed := func(next func(*testing.T, string, *memory)) func(*testing.T, string, *memory) {
		return func(t *testing.T, path string, m *memory) {
			t.Helper()
			if err := os.Remove(path + ".sha256"); err != nil {
				t.Fatal(err)
			}
			next(t, path, m)
		}
	}
	half := whole(func(_ string, data []byte) []byte { return data[:len(data)/2] })
	garbage := whole(func(_ string, data []byte) []byte { return []byte(strings.Repeat("nonsense", len(data)/8)) })
	middle := whole(func(_ string, data []byte) []byte {
		for i := len(data) / 2; i < len(data)/2+4096; i++ {
			data[i] ^= 0x55
		}
		return data
	})
	for name, c := range map[string]struct {
		spoil func(*testing.T, string, *memory)
		anew  bool // the whole log is read again
	}{
		"nothing":           {func(*testing.T, string, *memory) {}, false},
		"not closed":        {unsealed(func(*testing.T, string, *memory) {}), false},
		"behind":            {func(_ *testing.T, _ string, m *memory) { fill(m, 50) }, false},
		"deleted":           {func(_ *testing.T, path string, _ *memory) { _ = os.Remove(path) }, true},
		"emptied":           {whole(func(string, []byte) []byte { return nil }), true},
		"truncated":         {half, true},
		"cut, not closed":   {unsealed(half), true},
		"garbage":           {garbage, true},
		"bytes, not closed": {unsealed(garbage), true},
		"one bit":           {whole(func(_ string, data []byte) []byte { data[len(data)-100] ^= 1; return data }), true},
		"a page":            {middle, true},
		"page, not closed":  {unsealed(middle), true},
		"other version":     {unsealed(whole(func(_ string, data []byte) []byte { data[63]++; return data })), true},
		"another log": {func(_ *testing.T, _ string, m *memory) {
			for i := range m.records {
				m.records[i].Package = "other"
			}
		}, true},
		"shorter log": {func(_ *testing.T, _ string, m *memory) { m.records = m.records[:300] }, true},
	} {
		t.Run(name, func(t *testing.T) {
			m, path := &memory{}, filepath.Join(t.TempDir(), "index.db")
			fill(m, 2000)
			x := index.New(path, m, index.Options{})
			selected(t, x, index.Filter{})
			if err := x.Close(); err != nil {
				t.Fatal(err)
			}
			c.spoil(t, path, m)
			m.reads = 0
			x = index.New(path, m, index.Options{})
			defer x.Close()
			for _, field := range []string{"run", "package", "request"} {
				values := map[string][]uint64{}
				for _, r := range m.records {
					value := map[string]string{"run": r.Run, "package": r.Package, "request": r.RequestID}[field]
					values[value] = append(values[value], r.Seq)
				}
				for value, want := range values {
					if field == "request" && want[0]%97 != 0 {
						continue
					}
					if got := selected(t, x, of(field, value)); !slices.Equal(got, want) {
						t.Errorf("%s %s: %d records, want %d", field, value, len(got), len(want))
					}
				}
			}
			if anew := m.reads >= len(m.records); anew != c.anew {
				t.Errorf("%d of %d records were read; anew: %t, want %t", m.reads, len(m.records), anew, c.anew)
			}
		})
	}
}

// TestErasedIsForgotten: what was erased from the log is not in the index's files.
func TestErasedIsForgotten(t *testing.T) {
	m, path := &memory{}, filepath.Join(t.TempDir(), "index.db")
	m.add(audit.Record{Kind: audit.KindSandbox, Outcome: audit.Started, Run: "r1", Sandbox: "s1", User: "ada-lovelace"})
	x := index.New(path, m, index.Options{})
	defer x.Close()
	if got := selected(t, x, of("user", "ada-lovelace")); len(got) != 1 {
		t.Fatal("she is not found")
	}
	m.records[0].User = "(erased)"
	m.add(audit.Record{Kind: audit.KindLog, Outcome: audit.Erased})
	if got := selected(t, x, of("user", "ada-lovelace")); len(got) != 0 {
		t.Error("she is found though she was erased")
	}
	if got := selected(t, x, of("user", "(erased)")); len(got) != 1 {
		t.Error("the erased record is not found")
	}
	files, err := filepath.Glob(path + "*")
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(data), "lovelace") {
			t.Errorf("%s still has her name", filepath.Base(file))
		}
	}
}

// TestDamageWhileOpen: a file that is spoilt under an open index is made anew.
func TestDamageWhileOpen(t *testing.T) {
	m, path := &memory{}, filepath.Join(t.TempDir(), "index.db")
	fill(m, 20_000)
	x := index.New(path, m, index.Options{})
	selected(t, x, index.Filter{Limit: 1})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	x = index.New(path, m, index.Options{})
	defer x.Close()
	selected(t, x, index.Filter{Limit: 1})
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if _, err := f.WriteAt(make([]byte, info.Size()-8192), 4096); err != nil {
		t.Fatal(err)
	}
	if got := selected(t, x, index.Filter{}); len(got) != 20_000 {
		t.Errorf("%d of 20000 records are found", len(got))
	}
}

// TestRecordsThatAreElsewhere: a log whose first segments were moved away is
// indexed as far as it is there.
func TestRecordsThatAreElsewhere(t *testing.T) {
	m, path := &memory{}, filepath.Join(t.TempDir(), "index.db")
	fill(m, 30_000)
	m.hidden = 20_000
	x := index.New(path, m, index.Options{})
	if got := selected(t, x, index.Filter{}); len(got) != 10_000 || got[0] != 20_000 {
		t.Errorf("%d records are found", len(got))
	}
	since := index.Filter{Since: m.records[25_000].Time}
	if got := selected(t, x, since); len(got) != 5_000 {
		t.Errorf("%d records are found since the 25,000th", len(got))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	m.hidden = 30_000 // now all of it
	x = index.New(path, m, index.Options{})
	if got := selected(t, x, index.Filter{}); len(got) != 0 {
		t.Errorf("%d records are found that the log does not have", len(got))
	}
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	m.hidden = 0
	x = index.New(path, m, index.Options{})
	defer x.Close()
	if got := selected(t, x, index.Filter{}); len(got) != 30_000 {
		t.Errorf("%d records are found after all came back", len(got))
	}
}

// TestAnyPath: what a path is made of is no matter.
func TestAnyPath(t *testing.T) {
	t.Chdir(t.TempDir())
	m := &memory{}
	fill(m, 3)
	for _, path := range []string{"index.db", "a b/index?x=1#y%20.db"} {
		x := index.New(path, m, index.Options{})
		if got := selected(t, x, index.Filter{}); len(got) != 3 {
			t.Errorf("%s: %d records", path, len(got))
		}
		if err := x.Close(); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(path); err != nil {
			t.Error(err)
		}
	}
}

func TestFilesAreClosedToOthers(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "index")
	m := &memory{}
	fill(m, 1)
	x := index.New(filepath.Join(dir, "index.db"), m, index.Options{})
	selected(t, x, index.Filter{})
	if err := x.Close(); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir(dir)
	if err != nil || len(entries) != 2 {
		t.Fatal(entries, err)
	}
	for _, e := range entries {
		if info, err := e.Info(); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s has mode %v", e.Name(), info.Mode())
		}
	}
}
