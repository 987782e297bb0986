package httpapi

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/cofferdam-dev/cofferdam/api"
	"github.com/cofferdam-dev/cofferdam/internal/decide/approval"
	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/releasediff"
)

// KeptRelease is a file of a release by its bytes.
type KeptRelease struct {
	Name   string `json:"name"`
	SHA256 string `json:"sha256"` // hex
}

// ReleaseLook is what a person wants to see of a release.
type ReleaseLook struct {
	After     KeptRelease
	Before    *KeptRelease // nil: there is none
	Ecosystem pkgref.Ecosystem
	Path      string // a file within it; "": which files differ
	// Scripts are the commands that run when it is installed.
	Scripts []string
}

// Releases look into the releases that the cache has. Nobody fetches anything for that.
type Releases interface {
	// Kept tells whether the cache has a file.
	Kept(k KeptRelease) bool
	// Look gives the files that differ or, with a path, that file.
	Look(ctx context.Context, ask ReleaseLook) (releasediff.Listing, *releasediff.Text, error)
}

func (s approvalRoutes) diffApproval(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Releases == nil {
		return errNotWired
	}
	request, err := s.cfg.Approvals.Get(r.Context(), r.PathValue("id"))
	if err != nil {
		return err
	}
	if request.IsTree() || request.Kind != "" {
		return fault.Invalid("%s is not about one release; name a request that is", request.ID)
	}
	after, kind, err := s.keptOf(request, r.URL.Query().Get("file"))
	if err != nil {
		return err
	}
	answer := api.ApprovalDiff{File: after.Name}
	look := ReleaseLook{After: after, Ecosystem: request.Package.Ecosystem, Path: r.URL.Query().Get("path"), Scripts: request.Evidence.Scripts}
	before, err := s.approvedBefore(r.Context(), request, kind)
	if err != nil {
		return err
	}
	if before.request.ID == "" {
		answer.Note = before.why
	} else {
		look.Before = &before.kept
		answer.Against, answer.AgainstVersion, answer.AgainstRequest = before.kept.Name, before.request.Package.Version, before.request.ID
	}
	list, text, err := s.cfg.Releases.Look(r.Context(), look)
	if err != nil {
		return err
	}
	answer.Total, answer.Same = list.Total, list.Same
	for _, c := range list.Changes {
		answer.Changes = append(answer.Changes, api.FileChange(c))
	}
	if text != nil {
		shown := api.FileText(*text)
		answer.Text = &shown
	}
	return writeJSON(w, r, http.StatusOK, answer)
}

// keptOf is the file of a request that is meant, or the first whose bytes are here.
func (s approvalRoutes) keptOf(request approval.Request, named string) (k KeptRelease, kind string, err error) {
	for _, f := range request.Files {
		if named != "" && f.Name != named {
			continue
		}
		if k := keptRelease(f); k.SHA256 != "" && s.cfg.Releases.Kept(k) {
			return k, f.Kind, nil
		}
		if named != "" {
			return KeptRelease{}, "", fault.New(fault.ErrNotFound, "the cache does not have %s: it was not fetched yet, or it had to make room", f.Name)
		}
	}
	if named != "" {
		return KeptRelease{}, "", fault.New(fault.ErrNotFound, "%s has no file of that name", request.ID)
	}
	return KeptRelease{}, "", fault.New(fault.ErrNotFound, "the cache has no file of %s (%s): none was fetched yet, or it had to make room", request.ID, request.Package)
}

// keptRelease is a file by its sha256; without one the bytes were not here.
func keptRelease(f approval.File) KeptRelease {
	i := slices.IndexFunc(f.Digests, func(d string) bool { return strings.HasPrefix(d, "sha256:") })
	if i < 0 {
		return KeptRelease{}
	}
	return KeptRelease{Name: f.Name, SHA256: strings.TrimPrefix(f.Digests[i], "sha256:")}
}

// earlierRelease is what a release is compared with, or why with nothing.
type earlierRelease struct {
	request approval.Request
	kept    KeptRelease
	why     string
}

// approvedBefore is the last release of the project that was approved and whose bytes are here, in a file of the
// same kind where it has one.
func (s approvalRoutes) approvedBefore(ctx context.Context, of approval.Request, kind string) (earlierRelease, error) {
	all, err := approval.ApprovedBefore(ctx, s.cfg.Approvals, of.Package)
	if err != nil || len(all) == 0 {
		return earlierRelease{why: "no other release of it was approved here"}, err
	}
	for _, r := range all {
		var found *approval.File
		for _, f := range r.Files {
			if k := keptRelease(f); k.SHA256 == "" || !s.cfg.Releases.Kept(k) {
				continue
			}
			if found == nil || f.Kind == kind && found.Kind != kind {
				found = &f
			}
		}
		if found != nil {
			return earlierRelease{request: r, kept: keptRelease(*found)}, nil
		}
	}
	return earlierRelease{why: "the cache does not have the files any more of the releases of it that were approved here"}, nil
}
