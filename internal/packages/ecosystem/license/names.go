package license

import (
	"slices"
	"strings"
	"sync"

	"github.com/google/licensecheck"
)

// knownLicence is SPDX's name of what people call a licence; "" if it is not one of the usual.
func knownLicence(name string) string {
	name = strings.ToLower(strings.Join(strings.FieldsFunc(name, func(r rune) bool { return strings.ContainsRune(" ,-_()", r) }), " "))
	name = strings.TrimSuffix(strings.TrimPrefix(name, "the "), " license")
	for _, drop := range []string{" licence", " software", " version", " v"} {
		name = strings.ReplaceAll(name, drop+" ", " ")
		name = strings.TrimSuffix(name, drop)
	}
	switch name {
	case "mit", "expat", "mit expat":
		return "MIT"
	case "apache 2.0", "apache 2", "apache license 2.0", "apache license 2", "asl 2.0", "asl 2", "apache2", "apachev2", "apache license v2.0":
		return "Apache-2.0"
	case "apache":
		return "Apache"
	case "bsd":
		return "BSD"
	case "bsd 3 clause", "3 clause bsd", "new bsd", "modified bsd", "bsd 3", "bsd3", "revised bsd":
		return "BSD-3-Clause"
	case "bsd 2 clause", "2 clause bsd", "simplified bsd", "bsd 2", "freebsd":
		return "BSD-2-Clause"
	case "isc", "iscl", "isc iscl":
		return "ISC"
	case "mpl 2.0", "mpl2", "mozilla public license 2.0", "mozilla public license 2.0 mpl 2.0":
		return "MPL-2.0"
	case "gpl":
		return "GPL"
	case "gplv2", "gpl 2.0", "gpl v2", "gpl2":
		return "GPL-2.0"
	case "gplv3", "gpl 3.0", "gpl v3", "gpl3":
		return "GPL-3.0"
	case "lgpl":
		return "LGPL"
	case "psf", "psfl", "python foundation", "python software foundation":
		return "PSF-2.0"
	case "zlib", "zlib/libpng":
		return "Zlib"
	case "unlicense":
		return "Unlicense"
	default:
		return ""
	}
}

// classified are the licences of Python's classifiers, by SPDX's names where they are known.
func classified(classifiers []string) []string {
	var ids []string
	for _, c := range classifiers {
		rest, is := strings.CutPrefix(c, "License :: ")
		if !is {
			continue
		}
		name := strings.TrimPrefix(rest, "OSI Approved :: ")
		if name == "OSI Approved" { // approved, and not which
			continue
		}
		if len(ids) == maxClassifiers {
			return append(ids, "and more")
		}
		if id := classifierName(name); !slices.Contains(ids, id) {
			ids = append(ids, id)
		}
	}
	return ids
}

// classifierName is SPDX's name of a classifier's last part, or that part.
func classifierName(name string) string {
	switch name {
	case "MIT License":
		return "MIT"
	case "MIT No Attribution License (MIT-0)":
		return "MIT-0"
	case "Apache Software License":
		return "Apache" // whichever version
	case "BSD License":
		return "BSD"
	case "ISC License (ISCL)":
		return "ISC"
	case "Mozilla Public License 1.1 (MPL 1.1)":
		return "MPL-1.1"
	case "Mozilla Public License 2.0 (MPL 2.0)":
		return "MPL-2.0"
	case "Python Software Foundation License":
		return "PSF-2.0"
	case "The Unlicense (Unlicense)":
		return "Unlicense"
	case "Zero-Clause BSD (0BSD)":
		return "0BSD"
	case "zlib/libpng License":
		return "Zlib"
	case "Boost Software License 1.0 (BSL-1.0)":
		return "BSL-1.0"
	case "CC0 1.0 Universal (CC0 1.0) Public Domain Dedication":
		return "CC0-1.0"
	case "Zope Public License":
		return "ZPL"
	case "Eclipse Public License 2.0 (EPL-2.0)":
		return "EPL-2.0"
	default:
		return gnuName(name)
	}
}

// gnuName is classifierName for GNU's.
func gnuName(name string) string {
	switch name {
	case "GNU General Public License (GPL)":
		return "GPL"
	case "GNU General Public License v2 (GPLv2)":
		return "GPL-2.0-only"
	case "GNU General Public License v2 or later (GPLv2+)":
		return "GPL-2.0-or-later"
	case "GNU General Public License v3 (GPLv3)":
		return "GPL-3.0-only"
	case "GNU General Public License v3 or later (GPLv3+)":
		return "GPL-3.0-or-later"
	case "GNU Lesser General Public License v2 (LGPLv2)":
		return "LGPL-2.0-only"
	case "GNU Lesser General Public License v2 or later (LGPLv2+)":
		return "LGPL-2.0-or-later"
	case "GNU Lesser General Public License v3 (LGPLv3)":
		return "LGPL-3.0-only"
	case "GNU Lesser General Public License v3 or later (LGPLv3+)":
		return "LGPL-3.0-or-later"
	case "GNU Library or Lesser General Public License (LGPL)":
		return "LGPL"
	case "GNU Affero General Public License v3":
		return "AGPL-3.0-only"
	case "GNU Affero General Public License v3 or later (AGPLv3+)":
		return "AGPL-3.0-or-later"
	default:
		return name
	}
}

// mostCovered is how much of a text must be a licence's words, in per cent, for it to be one: a
// README that quotes some is not.
const mostCovered = 50

// texts recognises those licences that packages have. All that the library knows take two seconds and a hundred
// megabytes before the first is recognised, which a gateway has better use for.
var texts = sync.OnceValues(func() (*licensecheck.Scanner, error) { //nolint:gochecknoglobals // a constant, made when it is needed
	return licensecheck.NewScanner(slices.DeleteFunc(licensecheck.BuiltinLicenses(), func(l licensecheck.License) bool {
		return !slices.ContainsFunc(usualLicences(), func(name string) bool { return l.ID == name || strings.HasPrefix(l.ID, name+"-") })
	}))
})

// usualLicences are the licences whose text is recognised, each with all whose names begin so.
func usualLicences() []string {
	return []string{
		"0BSD", "AGPL-3.0", "Apache-2.0", "Artistic-2.0", "BSD-2-Clause", "BSD-3-Clause", "BSL-1.0", "BlueOak-1.0.0", "CC0-1.0", "CC-BY-4.0",
		"CommonsClause", "EPL-2.0", "GPL-2.0", "GPL-3.0", "HPND", "ISC", "LGPL-2.1", "LGPL-3.0", "MIT", "MPL-2.0", "PSF-2.0", "Python-2.0",
		"SSPL-1.0", "Unlicense", "WTFPL", "ZPL-2.1", "Zlib",
	}
}

// recognised are the licences whose text this is, by SPDX's names.
func recognised(text []byte) []string {
	known, err := texts()
	if err != nil {
		return nil // not reached: a test has it made
	}
	found := known.Scan(text[:min(len(text), MaxText)])
	if found.Percent < mostCovered {
		return nil
	}
	var ids []string
	for _, m := range found.Match {
		if !m.IsURL && !slices.Contains(ids, m.ID) {
			ids = append(ids, m.ID)
		}
	}
	return ids
}
