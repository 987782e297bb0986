package gateway

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/cofferdam-dev/cofferdam/internal/decide/door"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
	"github.com/cofferdam-dev/cofferdam/internal/packages/gateway/pages"
)

// Limits of what is read of a project at one time, where each release has to be asked.
const (
	firstReleases   = 3 // beside those that are wanted
	furtherReleases = 6
	maxWalkedFile   = 32 << 20 // bytes of a file that is fetched for its metadata
)

// readProject reads what a project's releases require: of its page, or of the metadata
// of some of them. The door judges what is read, as it does for clients.
func (wr *walker) readProject(ctx context.Context, w *guestWalk, sandbox string, item door.ToRead, to destination) error {
	sources, err := wr.sources.sourcesOf(ctx, wr.door, door.OwnerAsk{Sandbox: sandbox, Package: item.Project, Walk: true})
	if err != nil {
		return err
	}
	for _, s := range sources {
		at := subject{sandbox: sandbox, source: s, route: ecosystem.Route{Project: item.Project.Name}}
		err = wr.readProjectAt(ctx, w, at, item, to)
		if !errors.Is(err, fault.ErrNotFound) {
			break
		}
	}
	if errors.Is(err, fault.ErrUnavailable) {
		return err // and is tried again
	}
	if err != nil {
		wr.cfg.Log.Debug("nothing is known of what a project requires", "project", item.Project.String(), "error", err)
	}
	return nil
}

func (wr *walker) readProjectAt(ctx context.Context, w *guestWalk, at subject, item door.ToRead, to destination) error {
	if item.Anew {
		w.retryProject(item.Project)
	}
	if requirer, ok := at.source.Protocol.(ecosystem.Requirer); ok && item.Round == 0 && len(item.Versions) > 0 {
		return wr.readEach(w, item.Project, item.Versions, func(version string) (bool, error) { return wr.readRequires(ctx, at, requirer, version) })
	}
	p, err := wr.pages.Page(ctx, at.source.Source, item.Project.Name)
	if err != nil {
		return err
	}
	j, err := wr.pages.Judge(ctx, pages.Reader{Sandbox: at.sandbox, Walk: true}, at.source.Source, item.Project.Name, p)
	if err != nil {
		return err
	}
	switch s := at.source.Protocol.(type) {
	case ecosystem.Lister:
		return wr.pages.TellEdges(ctx, at.sandbox, j)
	case ecosystem.Requirer:
		return wr.readEach(w, item.Project, releasesToRead(w, at, j, item, to), func(version string) (bool, error) { return wr.readRequires(ctx, at, s, version) })
	case ecosystem.Describer:
		return wr.readEach(w, item.Project, releasesToRead(w, at, j, item, to), func(version string) (bool, error) { return wr.readSidecar(ctx, at, j, version) })
	}
	return nil
}

// readEach reads the metadata of some releases, each once; read tells whether it may be
// had at all. An error is of one that could not be had now.
func (wr *walker) readEach(w *guestWalk, project pkgref.Ref, versions []string, read func(string) (bool, error)) error {
	failed := make([]error, len(versions))
	places := make([]int, len(versions))
	for i := range places {
		places[i] = i
	}
	together(places, func(i int) {
		if !w.claimRelease(project, versions[i]) {
			return
		}
		var allowed bool
		allowed, failed[i] = read(versions[i])
		if failed[i] == nil && !allowed {
			w.setAside(project, versions[i])
		}
		if errors.Is(failed[i], fault.ErrUnavailable) {
			w.forgetRelease(project, versions[i])
			return
		}
		if failed[i] != nil {
			wr.cfg.Log.Debug("what a release requires is not known", "project", project.String(), "version", versions[i], "error", failed[i])
			failed[i] = nil
		}
	})
	return errors.Join(failed...)
}

// readSidecar reads the metadata of one file of a release that may be had. A package that waits or
// is refused admits nothing, and is not read.
func (wr *walker) readSidecar(ctx context.Context, at subject, j pages.Judged, version string) (allowed bool, err error) {
	f := fileToRead(j, version)
	if f == nil {
		return true, nil
	}
	l := at.reading(*f, version)
	l.file.Published = j.Published(f)
	if allowed, err := wr.mayRead(ctx, l.fileAsk()); err != nil || !allowed {
		return false, err
	}
	_, d, err := wr.inspections.metadata(ctx, at.source, at.route.Project, *f)
	if err != nil {
		return true, err
	}
	return true, wr.door.Edges(ctx, at.sandbox, l.ref, d.Requirements)
}

// fileToRead is the file of a release whose metadata costs least.
func fileToRead(j pages.Judged, version string) *ecosystem.File {
	var best *ecosystem.File
	cost := func(f *ecosystem.File) int64 {
		if f.Sidecar != "" {
			return 0
		}
		return max(f.Size, 1)
	}
	for i := range j.Index.Files {
		f := &j.Index.Files[i]
		if f.Version != version || f.Kind != policy.KindWheel || !j.Decision(i).Allowed() || cost(f) > maxWalkedFile {
			continue
		}
		if best == nil || cost(f) < cost(best) {
			best = f
		}
	}
	return best
}

// readRequires reads the attachment of a release that tells what it requires.
func (wr *walker) readRequires(ctx context.Context, at subject, requirer ecosystem.Requirer, version string) (allowed bool, err error) {
	attacher, ok := at.source.Protocol.(ecosystem.Attacher)
	route, err := requirer.Requires(at.route.Project, version)
	if err != nil || !ok {
		return true, err
	}
	at.route = route
	l := at.reading(ecosystem.File{Name: route.File, Version: version, Kind: policy.KindMetadata}, version)
	if allowed, err := wr.mayRead(ctx, l.fileAsk()); err != nil || !allowed {
		return false, err
	}
	found, err := wr.attachments.getAttachment(ctx, at.source, attacher, route)
	if err != nil {
		return true, err
	}
	v := verified{located: l, digests: found.digests}
	v.file.Digest = found.digest
	if found.Witnessed {
		v.release = wr.locator.described(ctx, l, found.Version)
	}
	if allowed, err := wr.mayRead(ctx, v.fileAsk()); err != nil || !allowed {
		return false, err
	}
	return true, wr.door.Edges(ctx, at.sandbox, l.ref, found.requirements().Requirements)
}

// reading locates what is read on the way to another package.
func (s subject) reading(f ecosystem.File, version string) located {
	return located{subject: s, file: f, ref: s.refOf(version), url: f.URL}
}

func (wr *walker) mayRead(ctx context.Context, ask door.FileAsk) (bool, error) {
	answer, err := wr.door.Walk(ctx, door.WalkAsk{FileAsk: ask})
	return err == nil && answer.Decision.Allowed(), err
}

// releasesToRead chooses releases whose requirements are not known: those that are
// wanted, the newest, and those nearest in time to what is looked for, since what is
// pinned together was published together. Where no time is known, some of all ages.
func releasesToRead(w *guestWalk, at subject, j pages.Judged, item door.ToRead, to destination) []string {
	all := readableReleases(at.source.Ecosystem(), j)
	var chosen []string
	take := func(version string) {
		if !slices.Contains(chosen, version) && !w.isKnown(item.Project, version) {
			chosen = append(chosen, version)
		}
	}
	for _, r := range all {
		if slices.Contains(item.Versions, r.String()) {
			take(r.String())
		}
	}
	most := len(chosen) + firstReleases
	if item.Round > 0 {
		most = len(chosen) + furtherReleases
	}
	if len(all) > 0 && len(item.Versions) == 0 {
		take(all[0].String())
	}
	if item.Round == 0 && len(item.Versions) > 0 {
		return chosen
	}
	for _, version := range inOrderOf(all, to.published, item.Round) {
		if len(chosen) >= most {
			break
		}
		take(version)
	}
	return chosen
}

// readable is a release with when it was published.
type readable struct {
	pkgref.Version
	published time.Time
}

// readableReleases are those of which a file may be had, the newest first, pre-releases last.
func readableReleases(e pkgref.Ecosystem, j pages.Judged) []readable {
	byText := map[string]int{}
	var out []readable
	for i, f := range j.Index.Files {
		if !j.Decision(i).Allowed() {
			continue
		}
		if _, known := byText[f.Version]; known {
			continue
		}
		byText[f.Version] = len(out)
		v, _ := pkgref.ParseVersion(e, f.Version)
		out = append(out, readable{v, j.Published(&f)})
	}
	slices.SortFunc(out, func(a, b readable) int {
		if a.Stable() != b.Stable() {
			if a.Stable() {
				return -1
			}
			return 1
		}
		return b.CompareSpelled(a.Version)
	})
	return out
}

// inOrderOf orders releases by how near in time they are; without a time evenly over
// all of them, from the newest on.
func inOrderOf(all []readable, published time.Time, round int) []string {
	dated := !published.IsZero() && slices.ContainsFunc(all, func(r readable) bool { return !r.published.IsZero() })
	out := make([]string, 0, len(all))
	if dated {
		near := slices.Clone(all)
		slices.SortStableFunc(near, func(a, b readable) int {
			return cmp.Compare(a.published.Sub(published).Abs(), b.published.Sub(published).Abs())
		})
		for _, r := range near {
			out = append(out, r.String())
		}
		return out
	}
	if round == 0 {
		return nil // the newest will do, until it does not
	}
	for step := len(all); step > 0; step /= 2 { // each pass is twice as dense
		for i := 0; i < len(all); i += step {
			out = append(out, all[i].String())
		}
	}
	return out
}
