// Package unended knows what the log says has begun and has not ended, so that nothing stays
// so when whoever would have told the end is gone: the daemon, a gateway, a keeper.
//
// It reads the log itself, and keeps what it has found in a file beside it, so that a start
// reads only what came after that. A begin is the `started` record of a connection to a host,
// of a call of a tool, of a command, a cell or a call's code, of a file that a client has to do
// with, of a sandbox, or of a template's build; and the `restored` record of a command that goes on in a copy.
package unended

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"maps"
	"os"
	"slices"
	"strconv"
	"sync"

	"github.com/cofferdam-dev/cofferdam/internal/decide/admission/records"
	"github.com/cofferdam-dev/cofferdam/internal/decide/audit"
	"github.com/cofferdam-dev/cofferdam/internal/kit/atomicfile"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
)

// The details that a build's records have, as admission writes them.
const (
	detailBuild = "build"
	buildBegun  = "begun"
	buildFailed = "failed"
)

// keepEvery is after how many records of the log what was found is written down.
const keepEvery = 4_096

// Begin is such a record without an end, as far as its end needs it.
type Begin struct {
	Seq       uint64            `json:"seq"`
	Kind      audit.Kind        `json:"kind"`
	Run       string            `json:"run,omitempty"`
	Sandbox   string            `json:"sandbox,omitempty"`
	Policy    string            `json:"policy,omitempty"`
	Rule      string            `json:"rule,omitempty"`
	RequestID string            `json:"request_id,omitempty"`
	File      string            `json:"file,omitempty"`
	Detail    map[string]string `json:"detail,omitempty"` // what its end has, too
}

// Command is the id of a command's, a cell's or a call's begin; "": it is none of these.
func (b Begin) Command() string { return b.Detail[records.DetailCommand] }

// form is that of a file that has all kinds of begins. One of another form lacks some, see ReadEarlier.
const form = 2

// keptBegins is the file: all records before Next are counted in.
type keptBegins struct {
	Form int     `json:"form"`
	Next uint64  `json:"next"`
	Open []Begin `json:"open"`
	// Sandboxes are apart from the others: an earlier version, to which somebody may go back, knows of
	// nobody who follows one, and would put an end of those that live on record.
	Sandboxes []Begin `json:"sandboxes,omitempty"`
}

// Registry has the begins without an end. Safe for concurrent use.
type Registry struct {
	log  audit.Log
	path string

	mu    sync.Mutex // guards all below; held while the log is read
	next  uint64     // the first record that was not read
	saved uint64     // next, as the file has it
	lacks bool       // another version wrote the file, which passed over some begins
	open  map[uint64]Begin
}

// Open reads what the file has, and the log from there on. A file that can't be read is made anew from
// the whole log; of one that another version wrote, ReadEarlier adds what it lacks.
func Open(ctx context.Context, log audit.Log, path string) (*Registry, error) {
	g := &Registry{log: log, path: path, open: map[uint64]Begin{}}
	b, err := os.ReadFile(path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "%s can't be read", path)
	}
	var k keptBegins
	if err == nil && json.Unmarshal(b, &k) == nil {
		g.next, g.saved, g.lacks = k.Next, k.Next, k.Form != form
		for _, one := range slices.Concat(k.Open, k.Sandboxes) {
			g.open[one.Seq] = one
		}
	}
	if err := g.Read(ctx); err != nil {
		return nil, err
	}
	return g, g.Save()
}

// Read takes what has come to the log since it was read last.
func (g *Registry) Read(ctx context.Context) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.readFile(ctx)
}

func (g *Registry) readFile(ctx context.Context) error {
	for r, err := range g.log.Records(ctx, audit.Filter{FromSeq: g.next}) {
		if err != nil {
			return err
		}
		g.takeRecord(r)
		g.next = r.Seq + 1
		if g.next-g.saved >= keepEvery {
			if err := g.saveFile(); err != nil {
				return err
			}
		}
	}
	return nil
}

// Next is the number from which on nothing was read: what begins later has a higher one.
func (g *Registry) Next() uint64 {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.next
}

// OwesBuild reports whether a build, by its id, has begun and not ended, as the log has it now.
func (g *Registry) OwesBuild(ctx context.Context, id string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.readFile(ctx); err != nil {
		return false, err
	}
	for _, b := range g.open {
		if b.Kind == audit.KindBuild && b.Detail[detailBuild] == id {
			return true, nil
		}
	}
	return false, nil
}

// Save writes down what was found.
func (g *Registry) Save() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.saveFile()
}

func (g *Registry) saveFile() error {
	k := keptBegins{Form: form, Next: g.next, Open: []Begin{}}
	if g.lacks {
		k.Form = 0
	}
	for _, b := range g.listBegins() {
		if b.Kind == audit.KindSandbox {
			k.Sandboxes = append(k.Sandboxes, b)
		} else {
			k.Open = append(k.Open, b)
		}
	}
	b, err := json.Marshal(k)
	if err == nil {
		err = atomicfile.Replace(g.path, b, 0o600)
	}
	if err != nil {
		return fault.Wrap(fault.ErrUnavailable, err, "%s can't be written", g.path)
	}
	g.saved = g.next
	return nil
}

// listBegins lists the begins, oldest first; mu is held.
func (g *Registry) listBegins() []Begin {
	all := make([]Begin, 0, len(g.open))
	for _, seq := range slices.Sorted(maps.Keys(g.open)) {
		all = append(all, g.open[seq])
	}
	return all
}

// takeRecord takes a record; mu is held.
func (g *Registry) takeRecord(r audit.Record) {
	switch r.Kind {
	case audit.KindNetwork, audit.KindTool, audit.KindFile:
		g.takeNumbered(r)
	case audit.KindCommand:
		g.takeNamed(r, records.DetailCommand, r.Outcome == audit.Started || r.Outcome == audit.Restored)
	case audit.KindBuild:
		g.takeNamed(r, detailBuild, r.Outcome == audit.Started && r.Detail[records.DetailEvent] == buildBegun)
	case audit.KindSandbox:
		g.takeSandbox(r)
	case audit.KindPackage, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindFinding: // which have no ends, or whose ends others see to
	}
}

// takeNumbered takes what begins, or what ends by the number of its begin.
func (g *Registry) takeNumbered(r audit.Record) {
	switch {
	case r.Outcome == audit.Started:
		g.addBegin(r)
	case r.Outcome == audit.Finished && r.Detail[records.DetailRequest] == "", r.Outcome == audit.Failed && r.Kind != audit.KindNetwork,
		r.Outcome == audit.Aborted && r.Kind == audit.KindFile:
		if seq, err := strconv.ParseUint(r.Detail[records.DetailBegan], 10, 64); err == nil {
			delete(g.open, seq)
		}
	}
}

// takeNamed takes what begins, or what ends by a name that its begin has under a key.
func (g *Registry) takeNamed(r audit.Record, key string, begins bool) {
	switch {
	case begins:
		g.addBegin(r)
	case r.Outcome == audit.Finished || r.Outcome == audit.Failed:
		for seq, b := range g.open {
			if b.Kind == r.Kind && b.Detail[key] == r.Detail[key] && (b.Sandbox == r.Sandbox || key == detailBuild) {
				delete(g.open, seq)
			}
		}
	}
}

// takeSandbox takes that a sandbox begins, or that it ends. One that has failed to freeze has not.
func (g *Registry) takeSandbox(r audit.Record) {
	switch r.Outcome { //nolint:exhaustive // the others are in between
	case audit.Started:
		g.addBegin(r)
	case audit.Finished:
		maps.DeleteFunc(g.open, func(_ uint64, b Begin) bool { return b.Kind == audit.KindSandbox && b.Sandbox == r.Sandbox })
	}
}

// detailsOfEnd names the details that the end of a begin has, too.
func detailsOfEnd() []string {
	return append([]string{records.DetailName, records.DetailPort, records.DetailProtocol, records.DetailAddresses, records.DetailTool, records.DetailCommand, detailBuild, records.DetailTemplate},
		audit.FileDetail()...)
}

func (g *Registry) addBegin(r audit.Record) {
	b := Begin{Seq: r.Seq, Kind: r.Kind, Run: r.Run, Sandbox: r.Sandbox, Policy: r.Policy, Rule: r.Rule, RequestID: r.RequestID, File: r.File, Detail: map[string]string{}}
	for _, key := range detailsOfEnd() {
		if text := r.Detail[key]; text != "" {
			b.Detail[key] = text
		}
	}
	g.open[r.Seq] = b
}

// EndAll puts an end on record, with a reason, of each begin that is chosen. An end that could not
// be written stays in the registry, for the next time.
func (g *Registry) EndAll(ctx context.Context, reason string, chosen func(Begin) bool) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if err := g.readFile(ctx); err != nil {
		return err
	}
	candidates := g.listBegins()
	candidates = slices.DeleteFunc(candidates, func(b Begin) bool { return !chosen(b) })
	// An end is told before its begin is forgotten: what was chosen for that has its
	// end in the log by now.
	if err := g.readFile(ctx); err != nil {
		return err
	}
	owners, err := g.owners(ctx, candidates)
	if err != nil {
		return err
	}
	var errs []error
	for _, b := range candidates {
		if _, still := g.open[b.Seq]; !still {
			continue
		}
		r := recordOfEnd(b, reason)
		r.User, r.Token = owners[b.Seq].User, owners[b.Seq].OwnerToken()
		if _, err := g.log.Append(ctx, r); err != nil {
			errs = append(errs, err)
			break // the next ones can't be written either
		}
		delete(g.open, b.Seq)
	}
	errs = append(errs, g.saveFile())
	return errors.Join(errs...)
}

// owners are the records of begins, by their numbers: whose they are is not kept here, where it
// could not be erased.
func (g *Registry) owners(ctx context.Context, begins []Begin) (map[uint64]audit.Record, error) {
	all := map[uint64]audit.Record{}
	if len(begins) == 0 {
		return all, nil
	}
	var seqs []uint64
	for _, b := range begins {
		seqs = append(seqs, b.Seq)
	}
	for r, err := range g.log.Records(ctx, audit.Filter{Seqs: seqs}) {
		if err != nil {
			return nil, err
		}
		all[r.Seq] = r
	}
	return all, nil
}

// outcomeOf is how what has begun ends if nobody knows more.
func outcomeOf(k audit.Kind) audit.Outcome {
	switch k {
	case audit.KindNetwork, audit.KindCommand, audit.KindSandbox: // they have finished, however that was
		return audit.Finished
	case audit.KindFile:
		return audit.Aborted
	case audit.KindTool, audit.KindBuild,
		audit.KindPackage, audit.KindDaemon, audit.KindApproval, audit.KindLog, audit.KindFinding: // take lets none of these begin
		return audit.Failed
	}
	return audit.Failed // of a kind that nobody has said anything of, no success is told
}

// recordOfEnd returns the record of the end of a begin of which nobody knows more.
func recordOfEnd(b Begin, reason string) audit.Record {
	r := audit.Record{
		Kind: b.Kind, Outcome: audit.Finished, Run: b.Run, Sandbox: b.Sandbox, Policy: b.Policy, RequestID: b.RequestID, Rule: b.Rule, File: b.File,
		Reason: reason, Detail: maps.Clone(b.Detail),
	}
	if r.Detail == nil {
		r.Detail = map[string]string{}
	}
	r.Detail[records.DetailBegan] = strconv.FormatUint(b.Seq, 10)
	r.Outcome = outcomeOf(b.Kind)
	if b.Kind == audit.KindBuild {
		r.Detail[records.DetailEvent] = buildFailed
	}
	return r
}
