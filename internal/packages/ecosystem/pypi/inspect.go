package pypi

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/decide/policy"
	"github.com/cofferdam-dev/cofferdam/internal/kit/fault"
	"github.com/cofferdam-dev/cofferdam/internal/packages/archive"
	"github.com/cofferdam-dev/cofferdam/internal/packages/ecosystem"
)

// The findings that are recorded of wheels. None of them refuses a wheel: editable
// installs, import hooks and coverage tools work this way.
const (
	findingPth       = "the wheel installs a .pth file, whose lines run at every start of Python"
	findingCustomize = "the wheel installs a sitecustomize or usercustomize module, which runs at every start of Python"
)

// Inspect looks into a wheel or a source distribution. A wheel must have
// the files that its RECORD lists, with their digests, and metadata of
// the release that its name says; files that RECORD does not list are a finding, and in a wheel
// that was built here an error. A source distribution must be one folder with
// metadata of that release. row is not used: an index has no manifest.
//
// Scripts stay empty. Installing a wheel runs nothing, and that building a
// source distribution runs code is what its kind says.
func (Protocol) Inspect(file ecosystem.File, _ []byte, content ecosystem.Content) (ecosystem.Inspection, error) {
	switch file.Kind {
	case policy.KindWheel:
		return inspectWheel(file, content)
	case policy.KindSdist:
		return inspectSdist(file, content)
	case policy.KindBuilt:
		return inspectBuilt(file, content)
	default:
		return ecosystem.Inspection{}, fault.Invalid("the file is neither a wheel nor a source distribution")
	}
}

func inspectWheel(file ecosystem.File, content ecosystem.Content) (ecosystem.Inspection, error) {
	w, err := openWheel(file, content)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	if err := w.checkFormat(); err != nil {
		return ecosystem.Inspection{}, err
	}
	metadata, err := w.readFile("METADATA", maxMetadata)
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	sum := sha256.Sum256(metadata)
	found := ecosystem.Inspection{Sidecar: "sha256:" + hex.EncodeToString(sum[:])}
	if found.Description, err = describeAs(file, metadata); err != nil {
		return ecosystem.Inspection{}, err
	}
	if err := w.checkLanding(); err != nil {
		return ecosystem.Inspection{}, err
	}
	gaps, err := w.checkRecord(&found.Inside)
	if err == nil && file.Kind == policy.KindBuilt {
		err = gaps.refusalError()
	}
	if err != nil {
		return ecosystem.Inspection{}, err
	}
	entryPoints(&found.Inside, w)
	if err := w.tellPublished(&found, metadata); err != nil {
		return ecosystem.Inspection{}, err
	}
	found.Inside.Sorted()
	var seen contents
	for _, m := range w.members {
		seen.addPath(m.Path, w.info)
	}
	found.Bundled, found.Findings = seen.bundled, append(seen.findings(), gaps.findings()...)
	return found, nil
}

// describeAs reads metadata that must be of the file's own release.
func describeAs(file ecosystem.File, metadata []byte) (ecosystem.Description, error) {
	d, err := Protocol{}.Describe(metadata)
	if err != nil {
		return d, err
	}
	named, err := pkgref.ParsePythonFile(file.Name, d.Name)
	if err != nil || !pkgref.SameVersion(pkgref.Python, named.Version, d.Version) {
		return ecosystem.Description{}, fault.Invalid("the metadata in the file is of another release than the file's name says")
	}
	return d, nil
}

// checkFormat refuses a format that installers would refuse, or would have to
// guess at.
func (w *openedWheel) checkFormat() error {
	data, err := w.readFile("WHEEL", maxMetadata)
	if err != nil {
		return err
	}
	for line := range bytes.Lines(data) {
		key, value, ok := strings.Cut(string(line), ":")
		if ok && strings.EqualFold(key, "Wheel-Version") {
			if !strings.HasPrefix(strings.TrimSpace(value), "1.") {
				return fault.Invalid("the wheel has a format other than version 1")
			}
			return nil
		}
	}
	return fault.Invalid("the wheel does not say which format it has")
}

// checkRecord reads every file and compares it with RECORD, which must list nothing
// else. in learns what they bring.
func (w *openedWheel) checkRecord(in *ecosystem.Inside) (gaps, error) {
	var found gaps
	data, err := w.readFile("RECORD", maxRecord)
	if err != nil {
		return found, err
	}
	list, err := readRecord(data)
	if err != nil {
		return found, err
	}
	err = w.zip.Visit(func(m archive.Member, content io.Reader) error {
		head, content, err := ecosystem.Head(content)
		if err != nil {
			return err
		}
		if m.Mode.IsRegular() {
			inside(in, m.Path, w.info, head)
		}
		line, listed := w.takeLine(list, m.Path, &found)
		if name, inside := strings.CutPrefix(m.Path, w.info+"/"); inside && unlisted(name) {
			return nil
		}
		if !listed {
			found.unlisted.addPath(m.Path)
			return nil
		}
		return line.checkContent(content)
	})
	if err != nil {
		return found, err
	}
	return found, list.nowhere()
}

// contents collects what is worth telling of a file's paths.
type contents struct {
	bundled   []ecosystem.Bundled
	listed    map[ecosystem.Bundled]bool
	pth       bool
	customize bool
}

// addPath looks at one path; own is the file's own dist-info folder, or "".
func (c *contents) addPath(path, own string) {
	if installed, ok := topModulePart(path); ok {
		stem, _, _ := strings.Cut(installed, ".")
		c.pth = c.pth || strings.HasSuffix(installed, ".pth")
		c.customize = c.customize || stem == "sitecustomize" || stem == "usercustomize"
	}
	for folder := range strings.SplitSeq(path, "/") {
		if wheel, packed := strings.CutSuffix(folder, ".whl"); packed && strings.Count(wheel, "-") >= 4 {
			parts := strings.SplitN(wheel, "-", 3) // what virtualenv seeds environments with
			folder = parts[0] + "-" + parts[1] + infoSuffix
		}
		if folder == own || !strings.HasSuffix(folder, infoSuffix) {
			continue
		}
		ref, ok := pkgref.ParseDistInfo(folder)
		b := ecosystem.Bundled{Name: ref.Name, Version: ref.Version}
		if !ok || c.listed[b] || len(c.bundled) == ecosystem.MaxBundled {
			continue
		}
		if c.listed == nil {
			c.listed = map[ecosystem.Bundled]bool{}
		}
		c.listed[b] = true
		c.bundled = append(c.bundled, b)
	}
}

// topModulePart gives the first part of a path below the folder in which Python looks
// for modules at its start: the wheel's root, its purelib and platlib, or
// wherever its data schemes lead to a site-packages.
func topModulePart(path string) (string, bool) {
	top, rest, below := strings.Cut(path, "/")
	if !strings.HasSuffix(top, ".data") || !below {
		return top, true
	}
	scheme, rest, _ := strings.Cut(rest, "/")
	switch scheme {
	case "purelib", "platlib":
	default:
		_, inner, ok := strings.Cut("/"+rest, "/site-packages/")
		if !ok {
			return "", false
		}
		rest = inner
	}
	first, _, _ := strings.Cut(rest, "/")
	return first, first != ""
}

func (c *contents) findings() []string {
	var list []string
	if c.pth {
		list = append(list, findingPth)
	}
	if c.customize {
		list = append(list, findingCustomize)
	}
	return list
}
