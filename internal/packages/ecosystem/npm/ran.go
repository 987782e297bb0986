package npm

import (
	"cmp"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// ranSuffix ends the name of a package whose install scripts ran apart. With it the name is
// never taken for a published tarball's: Route and the packument know it by this.
const ranSuffix = ".0cofferdam" + tarballSuffix

var _ ecosystem.Builder = Protocol{}

// Built implements ecosystem.Builder: of a release that runs something when it is installed,
// the same without that.
func (Protocol) Built(source ecosystem.File) (ecosystem.File, bool) {
	path, okPath := strings.CutSuffix(source.Path, tarballSuffix)
	url, okURL := strings.CutSuffix(cmp.Or(source.Shown, source.URL), tarballSuffix)
	name, okName := strings.CutSuffix(source.Name, tarballSuffix)
	if source.Kind != policy.KindPackage || !source.Scripts || !okPath || !okURL || !okName {
		return ecosystem.File{}, false
	}
	ran := source
	ran.Kind, ran.Scripts, ran.Size = policy.KindRan, false, 0
	ran.Name, ran.Path, ran.URL, ran.Shown = name+ranSuffix, path+ranSuffix, url+ranSuffix, ""
	return ran, true
}

// Everywhere implements ecosystem.Builder: a release has one tarball.
func (Protocol) Everywhere(ecosystem.File) bool { return false }

// ranLimits bound a package whose scripts ran: it comes out of a sandbox in which its
// publisher's code did.
func ranLimits() archive.Limits {
	return archive.Limits{Members: 20_000, Unpacked: 1 << 30, Ratio: 200}
}

// onlyFiles refuses, of what comes out of a sandbox, all but files and folders, and files
// that take their owner's rights along.
func onlyFiles(m archive.Member) error {
	switch {
	case m.Link != "", !m.Mode.IsRegular() && !m.Mode.IsDir():
		return fault.Invalid("the package whose scripts ran has something else than files and folders in it")
	case m.Raised && !m.Mode.IsDir():
		return fault.Invalid("the package whose scripts ran has a file that runs with its owner's rights (setuid or setgid)")
	}
	return nil
}

// manifestOfRan is a release's manifest as clients see it when its scripts ran apart: with
// nothing that runs, and with the tarball in whose place it stands for. That has no digest
// before the scripts ran, and the page must not wait for scripts that nobody wants.
func manifestOfRan(row []byte, ran ecosystem.File) ([]byte, error) {
	out := []byte{'{'}
	err := eachMember(row, func(name string, v jsontext.Value) {
		switch name {
		case "hasInstallScript", "gypfile":
		case "scripts":
			out = appendMember(out, name, withoutInstalls(v))
		case "dist":
			out = appendText(append(appendName(out, name), `{"tarball":`...), ran.ClientURL())
			out = append(out, '}')
		default:
			out = appendMember(out, name, v)
		}
	})
	if err != nil {
		return nil, fault.Wrap(fault.ErrUnavailable, err, "the manifest of %s that was kept can't be read", ran.Name)
	}
	return append(out, '}'), nil
}

// withoutInstalls are the scripts but for those that run at an install.
func withoutInstalls(v jsontext.Value) jsontext.Value {
	if v.Kind() != '{' {
		return jsontext.Value("{}")
	}
	out := []byte{'{'}
	if eachMember(v, func(name string, script jsontext.Value) {
		switch name {
		case "preinstall", "install", "postinstall":
		default:
			out = appendMember(out, name, script)
		}
	}) != nil {
		return jsontext.Value("{}")
	}
	return append(out, '}')
}
