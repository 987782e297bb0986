package golang_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"strings"
	"sync"
	"testing"

	"golang.org/x/mod/sumdb/tlog"

	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem/golang/golangtest"
)

// lent is a log in memory: what a database answers, and what a gateway keeps.
type lent struct {
	verifier string

	mu      sync.Mutex
	answers map[string]golangtest.Answer
	fail    map[string]error
	asked   []string
	config  map[string][]byte
	cache   map[string][]byte
}

func lend(d *golangtest.Database) *lent {
	return &lent{verifier: d.Verifier, answers: d.Answers(), fail: map[string]error{}, config: map[string][]byte{}, cache: map[string][]byte{}}
}

func (l *lent) Verifier() string { return l.verifier }

func (l *lent) Remote(ctx context.Context, path string) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the caller went away")
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.asked = append(l.asked, path)
	if err := l.fail[path]; err != nil {
		return nil, err
	}
	a, ok := l.answers[path]
	if !ok {
		return nil, fault.New(fault.ErrNotFound, "the log has no %s", path)
	}
	return bytes.Clone(a.Body), nil
}

func (l *lent) Config(name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Clone(l.config[name]), nil
}

func (l *lent) Replace(name string, old, changed []byte) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !bytes.Equal(l.config[name], old) {
		return fault.New(fault.ErrConflict, "%s was changed", name)
	}
	l.config[name] = bytes.Clone(changed)
	return nil
}

func (l *lent) Cached(name string) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if data, ok := l.cache[name]; ok {
		return bytes.Clone(data), nil
	}
	return nil, fault.New(fault.ErrNotFound, "not kept")
}

func (l *lent) Cache(name string, data []byte) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cache[name] = bytes.Clone(data)
}

func (l *lent) set(path string, body []byte) {
	l.answers[path] = golangtest.Answer{Body: body}
}

func (l *lent) serve(d *golangtest.Database) { l.answers = d.Answers() }

// modules are n releases of one module and the last, which tests look up.
func modules(t *testing.T, n int) []golangtest.Module {
	t.Helper()
	var out []golangtest.Module
	for i := range n {
		out = append(out, golangtest.Pack(t, "example.com/Foo", fmt.Sprintf("v1.%d.0", i), [2]string{"a.go", fmt.Sprint("package a // ", i)}))
	}
	return out
}

const lookup1 = "lookup/example.com/!foo@v1.1.0"

func attest(t *testing.T, l *lent, m golangtest.Module) (ecosystem.Attested, error) {
	t.Helper()
	return golang.New().Attest(t.Context(), l, m.Path, m.Version)
}

func TestAttest(t *testing.T) {
	ms := modules(t, 300) // more than one tile
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	l := lend(d)
	for _, i := range []int{1, 0, 255, 256, 299} {
		got, err := attest(t, l, ms[i])
		want := ecosystem.Attested{File: ms[i].ZipSum, Attachment: ms[i].ModSum, Position: int64(i), Size: 300}
		if err != nil || got != want {
			t.Errorf("%s: %+v, %v; want %+v", ms[i].Version, got, err, want)
		}
	}
	// A module that was looked up before needs nobody.
	l.answers, l.asked = nil, nil
	got, err := attest(t, l, ms[1])
	if err != nil || got.File != ms[1].ZipSum || got.Position != 1 || got.Size != 300 || len(l.asked) > 0 {
		t.Errorf("from the cache: %+v, %v, asked %v", got, err, l.asked)
	}
}

// TestAttestGrows: a proxy may keep lookups from when the log was small; the
// size is the newest head's all the same, and never less than before.
func TestAttestGrows(t *testing.T) {
	ms := modules(t, 10)
	small := golangtest.NewDatabase(t, "sum.example", ms[:4]...)
	l := lend(small)
	old := l.answers[lookup1]
	if got, err := attest(t, l, ms[2]); err != nil || got.Size != 4 {
		t.Fatalf("%+v, %v", got, err)
	}
	for _, m := range ms[4:] {
		small.Add(m)
	}
	l.serve(small)
	l.answers[lookup1] = old
	if got, err := attest(t, l, ms[1]); err != nil || got.Position != 1 || got.Size != 4 {
		t.Errorf("%+v, %v; want position 1, of 4 as before", got, err)
	}
	l.set("lookup/example.com/!foo@v1.6.0", small.Record(6, small.Head(7)))
	if got, err := attest(t, l, ms[6]); err != nil || got.Position != 6 || got.Size != 10 {
		t.Errorf("%+v, %v; want position 6 of 10", got, err)
	}
	for name, latest := range map[string][]byte{"no newest head": nil, "an old one": small.Head(3), "a page": []byte("<html>")} {
		l := lend(small)
		if l.set("latest", latest); latest == nil {
			delete(l.answers, "latest")
		}
		if got, err := attest(t, l, ms[8]); err != nil || got.Position != 8 || got.Size != 10 {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

func TestAttestNotThere(t *testing.T) {
	ms := modules(t, 3)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	other := golangtest.Pack(t, "example.com/private", "v1.0.0", [2]string{"a.go", ""})
	if got, err := attest(t, lend(d), other); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("%+v, %v; want fault.ErrNotFound", got, err)
	}
	l := lend(d)
	l.fail[lookup1] = fault.New(fault.ErrUnavailable, "down")
	if got, err := attest(t, l, ms[1]); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%+v, %v; want fault.ErrUnavailable", got, err)
	}
	l = lend(d)
	l.fail["tile/8/0/000.p/3"] = fault.New(fault.ErrUnavailable, "down")
	if got, err := attest(t, l, ms[1]); !errors.Is(err, fault.ErrUnavailable) {
		t.Errorf("%+v, %v; want fault.ErrUnavailable", got, err)
	}
	if got, err := golang.New().Attest(t.Context(), lend(d), "example.com/foo", "main"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("a branch: %+v, %v", got, err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := golang.New().Attest(ctx, lend(d), ms[1].Path, ms[1].Version); !errors.Is(err, context.Canceled) {
		t.Errorf("nobody waits: %+v, %v", got, err)
	}
}

// TestAttestLies: every way in which the database or whoever relays it can lie.
func TestAttestLies(t *testing.T) {
	ms := modules(t, 20)
	evil := golangtest.Pack(t, "example.com/Foo", "v1.1.0", [2]string{"a.go", "package evil"})
	forge := func(d *golangtest.Database, text string) []byte {
		msg, err := tlog.FormatRecord(1, []byte(text))
		if err != nil {
			t.Fatal(err)
		}
		return append(msg, d.Head(d.Size())...)
	}
	lines := func(m golangtest.Module) string {
		return fmt.Sprintf("%s %s %s\n%s %s/go.mod %s\n", m.Path, m.Version, m.ZipSum, m.Path, m.Version, m.ModSum)
	}
	numbered := func(d *golangtest.Database, number string) []byte {
		_, rest, _ := bytes.Cut(d.Record(1, d.Head(d.Size())), []byte("\n"))
		return append([]byte(number+"\n"), rest...)
	}
	for name, lie := range map[string]func(d *golangtest.Database, l *lent){
		"a forged record":           func(d *golangtest.Database, l *lent) { l.set(lookup1, forge(d, lines(evil))) },
		"another number":            func(d *golangtest.Database, l *lent) { l.set(lookup1, numbered(d, "2")) },
		"a number past the log":     func(d *golangtest.Database, l *lent) { l.set(lookup1, numbered(d, "20")) },
		"a huge number":             func(d *golangtest.Database, l *lent) { l.set(lookup1, numbered(d, "9223372036854775807")) },
		"a number in two spellings": func(d *golangtest.Database, l *lent) { l.set(lookup1, numbered(d, "01")) },
		"a number with a sign":      func(d *golangtest.Database, l *lent) { l.set(lookup1, numbered(d, "+1")) },
		"another release's record":  func(d *golangtest.Database, l *lent) { l.set(lookup1, d.Record(2, d.Head(20))) },
		"a head without signature": func(d *golangtest.Database, l *lent) {
			l.set(lookup1, d.Record(1, tlog.FormatTree(tlog.Tree{N: 20})))
		},
		"another key": func(_ *golangtest.Database, l *lent) {
			l.serve(golangtest.NewDatabase(t, "sum.example", ms...))
		},
		"another name": func(_ *golangtest.Database, l *lent) {
			l.serve(golangtest.NewDatabase(t, "sum2.example", ms...))
		},
		"a false tile": func(d *golangtest.Database, l *lent) {
			for path, a := range d.Answers() {
				if strings.HasPrefix(path, "tile/") {
					a.Body[len(a.Body)/2] ^= 1
					l.answers[path] = a
				}
			}
		},
		"a false newest head": func(_ *golangtest.Database, l *lent) {
			l.set("latest", golangtest.NewDatabase(t, "sum.example", modules(t, 30)...).Head(30))
		},
		"a forked newest head": func(d *golangtest.Database, l *lent) {
			f := d.Fork()
			for i := range 30 {
				f.AddRecord(fmt.Sprint(i), fmt.Sprintf("record %d\n", i))
			}
			l.set("latest", f.Head(30))
			for path, a := range f.Answers() {
				if strings.HasPrefix(path, "tile/") && l.answers[path].Body == nil {
					l.answers[path] = a
				}
			}
		},
	} {
		d := golangtest.NewDatabase(t, "sum.example", ms...)
		l := lend(d)
		lie(d, l)
		if got, err := attest(t, l, ms[1]); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrInvalid", name, got, err)
		}
	}
	if got, err := attest(t, lend(golangtest.NewDatabase(t, "sum.example", ms...)), ms[1]); err != nil || got.File != ms[1].ZipSum {
		t.Errorf("the truth: %+v, %v", got, err)
	}
}

// TestAttestNoAnswer: what is no answer of a database is not yet a lie.
func TestAttestNoAnswer(t *testing.T) {
	ms := modules(t, 20)
	tiles := func(l *lent, change func(path string)) {
		for path := range maps.Clone(l.answers) {
			if strings.HasPrefix(path, "tile/") {
				change(path)
			}
		}
	}
	portal := []byte("<html>Please log in.</html>\n\n")
	for name, answer := range map[string]func(d *golangtest.Database, l *lent){
		"short tiles":         func(_ *golangtest.Database, l *lent) { tiles(l, func(p string) { l.set(p, l.answers[p].Body[:31]) }) },
		"a page for tiles":    func(_ *golangtest.Database, l *lent) { tiles(l, func(p string) { l.set(p, portal) }) },
		"no tiles":            func(_ *golangtest.Database, l *lent) { tiles(l, func(p string) { delete(l.answers, p) }) },
		"a page for a record": func(_ *golangtest.Database, l *lent) { l.set(lookup1, portal) },
		"nothing":             func(_ *golangtest.Database, l *lent) { l.set(lookup1, nil) },
		"no head":             func(d *golangtest.Database, l *lent) { l.set(lookup1, d.Record(1, nil)) },
	} {
		d := golangtest.NewDatabase(t, "sum.example", ms...)
		l := lend(d)
		answer(d, l)
		if got, err := attest(t, l, ms[1]); !errors.Is(err, fault.ErrUnavailable) || errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%s: %+v, %v; want fault.ErrUnavailable", name, got, err)
		}
	}
}

// TestAttestNegativeNumber: the client would check the log's first record for
// any negative number, so that number must not become a position.
func TestAttestNegativeNumber(t *testing.T) {
	ms := modules(t, 5)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	l := lend(d)
	_, rest, _ := bytes.Cut(d.Record(0, d.Head(5)), []byte("\n"))
	l.set("lookup/example.com/!foo@v1.0.0", append([]byte("-7\n"), rest...))
	if got, err := attest(t, l, ms[0]); !errors.Is(err, fault.ErrInvalid) {
		t.Errorf("%+v, %v; want fault.ErrInvalid", got, err)
	}
}

// TestAttestRecords: records that are in the log, and still say nothing that
// can be read in one way.
func TestAttestRecords(t *testing.T) {
	m := modules(t, 1)[0]
	zip, mod := m.Path+" "+m.Version+" "+m.ZipSum+"\n", m.Path+" "+m.Version+"/go.mod "+m.ModSum+"\n"
	for name, c := range map[string]struct {
		text string
		ok   bool
	}{
		"both":              {zip + mod, true},
		"only the go.mod":   {mod, true},
		"only the zip":      {zip, true},
		"twice":             {zip + zip + mod, false},
		"another module":    {zip + mod + "example.com/bar v1.0.0 " + m.ZipSum + "\n", false},
		"another version":   {zip + mod + m.Path + " v9.9.9 " + m.ZipSum + "\n", false},
		"another file":      {zip + m.Path + " " + m.Version + "/go.sum " + m.ZipSum + "\n", false},
		"another algorithm": {m.Path + " " + m.Version + " h2:" + m.ZipSum[3:] + "\n", false},
		"no digest":         {m.Path + " " + m.Version + " h1:x\n", false},
		"not canonical":     {m.Path + " " + m.Version + " " + m.ZipSum[:len(m.ZipSum)-2] + "/=\n", false},
		"more words":        {strings.TrimSuffix(zip, "\n") + " x\n", false},
		"two spaces":        {strings.Replace(zip, " ", "  ", 1), false},
	} {
		d := golangtest.NewDatabase(t, "sum.example")
		d.AddRecord("example.com/!foo@v1.0.0", c.text)
		got, err := attest(t, lend(d), m)
		if (err == nil) != c.ok || (err != nil && !errors.Is(err, fault.ErrInvalid)) {
			t.Errorf("%s: %+v, %v", name, got, err)
		}
	}
}

// TestAttestHistory: a log may grow; it may neither fork nor be another.
func TestAttestHistory(t *testing.T) {
	ms := modules(t, 40)
	for name, c := range map[string]struct {
		then func(d *golangtest.Database) *golangtest.Database
		size int64 // 0: it is refused
	}{
		"grown":  {func(d *golangtest.Database) *golangtest.Database { d.Add(ms[20]); return d }, 21},
		"as was": {func(d *golangtest.Database) *golangtest.Database { return d }, 20},
		"forked": {func(d *golangtest.Database) *golangtest.Database {
			f := d.Fork()
			for _, m := range append(ms[25:40:40], ms[:20]...) {
				f.Add(m)
			}
			return f
		}, 0},
		"forked at the same size": {func(d *golangtest.Database) *golangtest.Database {
			f := d.Fork()
			for _, m := range append(ms[:19:19], ms[30]) {
				f.Add(m)
			}
			return f
		}, 0},
		"shrunk and forked": {func(d *golangtest.Database) *golangtest.Database {
			f := d.Fork()
			for _, m := range append(ms[30:35:35], ms[3]) {
				f.Add(m)
			}
			return f
		}, 0},
	} {
		d := golangtest.NewDatabase(t, "sum.example", ms[:20]...)
		l := lend(d)
		if _, err := attest(t, l, ms[1]); err != nil {
			t.Fatal(err)
		}
		kept := string(l.config["sum.example/latest"])
		l.serve(c.then(d))
		got, err := attest(t, l, ms[3])
		if c.size == 0 {
			if !errors.Is(err, fault.ErrInvalid) || string(l.config["sum.example/latest"]) != kept {
				t.Errorf("%s: %+v, %v; want fault.ErrInvalid and the head kept", name, got, err)
			}
			continue
		}
		if err != nil || got.Size != c.size || got.Position != 3 {
			t.Errorf("%s: %+v, %v; want size %d", name, got, err, c.size)
		}
	}
	// A log that shows an older part of itself does not make ours smaller.
	d := golangtest.NewDatabase(t, "sum.example", ms[:20]...)
	l := lend(d)
	if _, err := attest(t, l, ms[1]); err != nil {
		t.Fatal(err)
	}
	l.set("lookup/example.com/!foo@v1.3.0", d.Record(3, d.Head(7)))
	l.set("latest", d.Head(7))
	if got, err := attest(t, l, ms[3]); err != nil || got.Size != 20 || got.Position != 3 {
		t.Errorf("shrunk: %+v, %v", got, err)
	}
}

// TestAttestDamagedCache: what was kept may be lost or broken; the log mends it.
func TestAttestDamagedCache(t *testing.T) {
	ms := modules(t, 5)
	d := golangtest.NewDatabase(t, "sum.example", ms...)
	l := lend(d)
	if _, err := attest(t, l, ms[1]); err != nil {
		t.Fatal(err)
	}
	if len(l.cache) < 2 {
		t.Fatalf("only %d things were kept", len(l.cache))
	}
	for name, damage := range map[string]func(p []byte) []byte{
		"cut":     func(p []byte) []byte { return p[:len(p)/2] },
		"empty":   func([]byte) []byte { return nil },
		"changed": func(p []byte) []byte { p[len(p)/2] ^= 1; return p },
	} {
		for key, data := range l.cache {
			l.cache[key] = damage(bytes.Clone(data))
		}
		for range 2 { // the second time, what the first has mended is read
			if got, err := attest(t, l, ms[1]); err != nil || got.File != ms[1].ZipSum {
				t.Errorf("%s: %+v, %v", name, got, err)
			}
		}
	}
}

func TestAttestTogether(t *testing.T) {
	ms := modules(t, 40)
	l := lend(golangtest.NewDatabase(t, "sum.example", ms...))
	var wg sync.WaitGroup
	for i, m := range ms {
		wg.Go(func() {
			if got, err := golang.New().Attest(t.Context(), l, m.Path, m.Version); err != nil || got.Position != int64(i) {
				t.Errorf("%s: %+v, %v", m.Version, got, err)
			}
		})
	}
	wg.Wait()
}

func TestVerifierFor(t *testing.T) {
	d := golangtest.NewDatabase(t, "sum.example")
	for _, s := range []string{d.Verifier, d.Verifier + " https://mirror.example"} {
		if got, err := golang.VerifierFor(s); err != nil || got != d.Verifier {
			t.Errorf("%q: %q, %v", s, got, err)
		}
	}
	for _, s := range []string{"", " ", "sum.example", "sum.example+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8", "a b c", "x+y+z", d.Verifier[:len(d.Verifier)-4]} {
		if got, err := golang.VerifierFor(s); !errors.Is(err, fault.ErrInvalid) {
			t.Errorf("%q: %q, %v; want fault.ErrInvalid", s, got, err)
		}
	}
	if _, err := golang.VerifierFor("off"); !errors.Is(err, fault.ErrNotFound) {
		t.Errorf("off: %v", err)
	}
	p := golang.New()
	if got := p.Known(d.Verifier); got != nil {
		t.Errorf("something is known of %s: %v", d.Name, got)
	}
	for _, s := range []string{"x+033de0ae+Ac4zctda0e5eza+HJyk9SxEdh+s3Ux18htTTAD8OuAn8", "sum.example", ""} {
		if got := p.Known(s); got != nil {
			t.Errorf("something is known of %s: %v", s, got)
		}
	}
}

// TestKnown: a larger log is a later one.
func TestKnown(t *testing.T) {
	sizes := golang.PublicSizes()
	for i := 1; i < len(sizes); i++ {
		if sizes[i].Size <= sizes[i-1].Size || sizes[i].Unix <= sizes[i-1].Unix {
			t.Errorf("%+v is known before %+v", sizes[i-1], sizes[i])
		}
	}
}
