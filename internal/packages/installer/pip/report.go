package pip

import (
	"net/url"
	"path"
	"strings"

	"github.com/go-json-experiment/json"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/kit/text"
	"github.com/cofferdam-dev/cofferdam/internal/packages/installer"
)

// report is what is read of pip's installation report, version 1. Members that
// are not named are left out; duplicate ones refuse the report.
type report struct {
	Version string       `json:"version"`
	Install []reportItem `json:"install"`
}

type reportItem struct {
	Download struct {
		URL     string `json:"url"`
		Archive *struct {
			Hash   string            `json:"hash"`
			Hashes map[string]string `json:"hashes"`
		} `json:"archive_info"`
		Dir *struct{} `json:"dir_info"`
		VCS *struct{} `json:"vcs_info"`
	} `json:"download_info"`
	Direct   bool `json:"is_direct"`
	Metadata struct {
		Name    string `json:"name"`
		Version string `json:"version"`
	} `json:"metadata"`
}

// readReport reads pip's report. A folder of the project itself is no release
// and is told in a note; a release that comes from elsewhere than an index is
// refused, since no gateway can show it.
func readReport(data []byte) (installer.Result, error) {
	out := installer.Result{Ecosystem: pkgref.Python}
	var r report
	if err := json.Unmarshal(data, &r); err != nil {
		return out, fault.Wrap(fault.ErrInvalid, err, "pip's report can't be read")
	}
	if r.Version != "1" {
		return out, fault.Invalid("pip's report is of version %q; version 1 is read", text.Shorten(r.Version, installer.MaxQuoted))
	}
	for _, item := range r.Install {
		ref, err := pkgref.New(pkgref.Python, item.Metadata.Name, item.Metadata.Version)
		if err != nil || ref.Version == "" {
			return out, fault.Invalid("pip's report names %q %q, which is not a release", text.Shorten(item.Metadata.Name, installer.MaxQuoted), text.Shorten(item.Metadata.Version, installer.MaxQuoted))
		}
		if item.Download.Dir != nil {
			out.Notes = append(out.Notes, ref.Name+" "+ref.Version+" is a folder of the project and comes from no registry")
			continue
		}
		choice, err := item.choice(ref)
		if err != nil {
			return out, err
		}
		out.Choices = append(out.Choices, choice)
	}
	return out, nil
}

func (item reportItem) choice(ref pkgref.Ref) (installer.Choice, error) {
	choice := installer.Choice{Name: ref.Name, Version: ref.Version}
	if item.Direct || item.Download.VCS != nil || item.Download.Archive == nil {
		return choice, fault.Invalid("%s %s comes from a repository or a URL of its own; only releases of an index can be planned", ref.Name, ref.Version)
	}
	u, err := url.Parse(item.Download.URL)
	if err != nil || u.Path == "" {
		return choice, fault.Invalid("pip's report gives no file for %s %s", ref.Name, ref.Version)
	}
	choice.File = path.Base(u.Path)
	for algorithm, hash := range item.Download.Archive.Hashes {
		if digest := algorithm + ":" + strings.ToLower(hash); installer.StrongDigest(digest) {
			choice.Digests = append(choice.Digests, digest)
		}
	}
	if old, hash, ok := strings.Cut(item.Download.Archive.Hash, "="); ok && len(choice.Digests) == 0 && installer.StrongDigest(old+":"+hash) {
		choice.Digests = []string{old + ":" + hash}
	}
	if len(choice.Digests) == 0 {
		return choice, fault.Invalid("pip's report has no strong hash of %s", text.Shorten(choice.File, installer.MaxQuoted))
	}
	return choice, nil
}
