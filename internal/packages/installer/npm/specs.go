package npm

import (
	"path"
	"regexp"
	"strings"

	"github.com/cofferdam-dev/cofferdam/internal/decide/pkgref"
	"github.com/cofferdam-dev/cofferdam/internal/packages/manifest"
)

var (
	// hosted is "owner/repository", which means a repository of one host.
	hosted  = regexp.MustCompile(`^[^@\s:/]+/[^\s:/@]+(?:#.*)?$`)
	archive = regexp.MustCompile(`(?i)\.(?:tgz|tar\.gz|tar)$`)
	scheme  = regexp.MustCompile(`^(?i:[a-z][a-z0-9+.-]*):`)
	// remote is git's way to write a place on a host: git@host:path.
	remote = regexp.MustCompile(`^[^@\s/]+@[^:\s/]+[:/]`)
	// bareName is what npm takes for the name of a package, whatever else it may be.
	bareName = regexp.MustCompile(`^[A-Za-z0-9_.!~*'()-]+$`)
	// looseVersion is what npm takes for a name, too, and pnpm for a version or a range: it may have zeros in front (01.0.0), and needs no hyphen
	// before a pre-release (1.0.0rc).
	looseVersion = regexp.MustCompile(`^[~v*]*(?:[xX]|[0-9*]+)(?:\.(?:[xX]|[0-9*]+)(?:\.(?:[xX]|[0-9*]+)[A-Za-z0-9.*-]*)?)?$`)
)

// splitAlias parts a spec that names another package, "npm:name@range". pnpm also has "npm:range", of the name that is asked for: name is "".
func splitAlias(spec string) (name, among string, is bool) {
	spec = strings.TrimSpace(spec)
	if !strings.HasPrefix(strings.ToLower(spec), "npm:") {
		return "", "", false
	}
	spec = spec[len("npm:"):]
	if at := strings.LastIndexByte(spec, '@'); at > 0 {
		return spec[:at], spec[at+1:], true
	}
	if _, isRange := pkgref.ParseRange(pkgref.Node, spec); isRange || looseVersion.MatchString(spec) {
		return "", spec, true
	}
	return spec, anyVersion, true
}

// folderOf is the directory or file of one's own that a package is asked for by; "": it is none.
func folderOf(spec string) string {
	spec = strings.TrimSpace(spec)
	switch kind := strings.ToLower(scheme.FindString(spec)); kind {
	case "file:", "link:", "portal:":
		rest := spec[len(kind):]
		return strings.Replace(rest, "///", "/", 1)
	case "":
		if strings.HasPrefix(spec, ".") || strings.HasPrefix(spec, "/") {
			return spec
		}
	}
	return ""
}

// readFolder reads a package in a directory of the project that another one asks for as a file: clients ask for what it
// depends on. Of a link they don't.
func readFolder(w *manifest.Wants, m manifest.Text, spec string) error {
	place := folderOf(spec)
	if place == "" || strings.HasPrefix(strings.ToLower(strings.TrimSpace(spec)), "link:") {
		return nil
	}
	dir := path.Join(path.Dir(m.File), place)
	if path.IsAbs(place) || dir == ".." || strings.HasPrefix(dir, "../") {
		return nil
	}
	if !w.Has(path.Join(dir, packageName)) {
		return nil
	}
	_, err := w.Include(packageFormat(), path.Join(dir, packageName))
	return err
}

// ofSpec reads what npm and pnpm take for where a package comes from. why tells that it is no registry's; target is the name of
// an alias, which the registry has it under, "" if that is its own.
func ofSpec(spec string) (target, why string) {
	const ownPlace, repository = "it is a file or directory of your own, so its name is not allowed from the registry", "it comes from a repository, so its name is not allowed from the registry"
	spec = strings.TrimSpace(spec)
	switch kind := strings.ToLower(scheme.FindString(spec)); kind {
	case "":
	case "npm:":
		target, among, _ := splitAlias(spec)
		if target == "" && bareName.MatchString(among) {
			return "", "npm takes it for a package of that name, and pnpm for a range of versions"
		}
		return target, ""
	case inCatalog:
		return "", ""
	case "file:", "link:", "portal:":
		return "", ownPlace
	case "workspace:":
		return "", "it is a member of the workspace"
	case "http:", "https:":
		return "", "it comes from an address, so its name is not allowed from the registry"
	case "patch:":
		return "", "it is patched, and its name is not read from this"
	case "jsr:":
		return "", "it comes from another registry"
	default: // git:, git+ssh:, github:, gist:, ssh:, and a drive of Windows
		if len(kind) == len("c:") {
			return "", ownPlace
		}
		return "", repository
	}
	switch {
	case strings.HasPrefix(spec, "$"):
		return "", "it is what another name is asked for by, and that is not known"
	case strings.HasPrefix(spec, "."), strings.HasPrefix(spec, "/"), strings.HasPrefix(spec, "~/"), strings.HasPrefix(spec, `\`), strings.HasPrefix(spec, `~\`):
		return "", ownPlace
	case archive.MatchString(spec):
		return "", ownPlace
	case remote.MatchString(spec), hosted.MatchString(spec), strings.ContainsRune(spec, '/'):
		return "", repository
	}
	return "", ""
}
