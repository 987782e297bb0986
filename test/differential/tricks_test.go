package differential

import (
	"fmt"
	"slices"
	"strings"
)

// trick is a tarball that two readers take for two things.
type trick struct {
	name    string
	headers []header
	fools   []string // the unpackers that land something else than a plain reader says
}

// tricks are those that are known, each with an honest package.json.
func tricks() []trick {
	gyp := string(file("package/binding.gyp", "{}").bytes()) // hidden in a file's content
	lie := func(at int, text string) []header {
		return []header{{path: "package/a", data: gyp, put: []patch{{at, text}}}}
	}
	list := []trick{
		{"a line feed in a value", []header{pax("comment=hello\n" + strings.TrimSuffix(paxData("path=package/binding.gyp"), "\n")), file("package/a", "{}")}, []string{"npm"}},
		{"a drive", []header{file("package/c:binding.gyp", "{}")}, []string{"npm"}},
		{"a drive's root", []header{file("package/c:/node_modules/x/package.json", `{"name":"x","scripts":{"install":"y"}}`)}, []string{"npm"}},
		{"a global size", []header{{path: "g", flag: 'g', data: paxData(fmt.Sprint("size=", len(manifest().data)))}, file("package/a", strings.Repeat("x", 512)+gyp)}, []string{"npm"}},
		{"a length with a zero", []header{{path: "x", flag: 'x', data: "031 path=package/innocent.txt.\n"}, file("package/binding.gyp", "{}")}, []string{"npm"}},
		{"an x without a name", []header{{flag: 'x', data: paxData("path=package/innocent")}, file("package/binding.gyp", "{}")}, []string{"npm"}},
		{"a target of no link", lie(157, "b"), []string{"npm"}},
		{"a pax target of no link", []header{pax("linkpath=../../b"), file("package/a", "x")}, []string{"npm"}},
		{"a user in another base", lie(108, "\x81"), []string{"npm"}},
		{"a checksum without an end", []header{{path: "package/a", data: gyp, sum: "%08o"}}, []string{"npm"}},
		{"a path that goes on", []header{file("package/a\x00\n/"+strings.Repeat("b", 88), "x")}, []string{"npm"}},
		{"what a link leaves behind", []header{pax("linkpath=b", "path=package/binding.gyp"), {path: "package/l", flag: '2'}, file("package/b", "{}")}, []string{"npm"}},
		{"a dot at the top", []header{file("./binding.gyp", "{}")}, []string{"npm", "pnpm"}},
		{"a hard link", []header{{path: "package/x.js", link: "package/package.json", flag: '1'}}, []string{"npm", "pnpm"}},
		{"an end that is none", []header{{prefix: "package/a", data: "x"}, file("package/binding.gyp", "{}")}, []string{"pnpm"}},
		{"a global between", []header{pax("path=package/binding.gyp"), {path: "g", flag: 'g', data: paxData("comment=b")}, file("package/a", "{}")}, []string{"npm"}},
		{"a name that is too long", []header{pax("path=package/" + strings.Repeat("x", 256)), file("package/a", "x")}, []string{"npm"}},
		{"an x like a gzip", []header{{path: "\x1f\x8b\x08", flag: 'x', data: paxData("path=package/b")}, file("package/a", "x")}, nil},
	}
	// A path outside of ASCII of which a letter lies where npm's unpacker begins a
	// new piece: it loses the path, and takes the one in the member's own header.
	umlauts := strings.Repeat("ü", 100)
	list = append(list, trick{"a letter in two pieces", []header{
		file("package/fill", strings.Repeat("x", 16384-5*512)),
		pax("path=package/" + umlauts + "/" + umlauts + "/" + umlauts), file("package/binding.gyp", "{}"),
	}, []string{"npm"}})
	for i, c := range list {
		at := 0
		if c.headers[0].flag == 'g' { // which counts at the beginning
			at = 1
		}
		list[i].headers = slices.Insert(slices.Clone(c.headers), at, manifest())
	}
	return list
}

// plain are honest tarballs, in the forms that packers write.
func plain() []trick {
	long := "package/" + strings.Repeat("d/", 60) + "file"
	return []trick{
		{"nothing more", []header{manifest()}, nil},
		{"a script", []header{file("package/package.json", `{"name":"foo","version":"1.0.0","scripts":{"postinstall":"x"}}`)}, nil},
		{"something to build", []header{manifest(), file("package/binding.gyp", "{}")}, nil},
		{"a bundled script", []header{
			file("package/package.json", `{"name":"foo","version":"1.0.0","dependencies":{"x":"1"},"bundleDependencies":["x"]}`),
			file("package/node_modules/x/package.json", `{"name":"x","version":"1.0.0","scripts":{"install":"y"}}`),
		}, nil},
		{"a folder", []header{manifest(), {path: "package/lib/", flag: '5'}, file("package/lib/a.js", "x")}, nil},
		{"a long path", []header{manifest(), pax("path=" + long), file("package/short", "x")}, nil},
		{"a long path of GNU's", []header{manifest(), {path: "././@LongLink", flag: 'L', magic: gnuMagic, data: long + "\x00"}, {path: long[:99], magic: gnuMagic, data: "x"}}, nil},
		{"a prefix", []header{manifest(), {path: "b/c", prefix: "package/a", data: "x"}}, nil},
		{"a long prefix", []header{manifest(), {path: "c", prefix: "package/" + strings.Repeat("p", 147), data: "x"}}, nil},
		{"npm's two times", []header{manifest(), {path: "c", prefix: "package/a", data: "x", put: []patch{{476, "15270440050\x0015270440050\x00"}}}}, nil},
		{"times and owners", []header{manifest(), pax("mtime=1.5", "uid=1000", "SCHILY.dev=1"), file("package/a", "x")}, nil},
		{"a comment of git's", []header{{path: "pax_global_header", flag: 'g', data: paxData("comment=0123456789")}, manifest(), file("package/a", "x")}, nil},
		{"a letter outside of ASCII", []header{manifest(), file("package/ü", "x"), pax("path=package/é"), file("package/é", "x")}, nil},
		{"the oldest format", []header{manifest(), {path: "package/a", old: true, magic: oldMagic, data: "x"}}, nil},
		{"another top", []header{file("foo-1.0.0/package.json", manifest().data), file("foo-1.0.0/a", "x")}, nil},
		{"a file twice", []header{manifest(), file("package/a", "x"), file("package/./a", "x")}, nil},
		{"a link", []header{manifest(), {path: "package/l", link: "package.json", flag: '2'}, file("package/a", "x")}, nil},
		{"a large user", []header{manifest(), {path: "package/a", data: "x", put: []patch{{108, "\x80\x00\x00\x00\x7f\xff\xff\xff"}}}}, nil},
		{"a colon", []header{manifest(), file("package/Foo::Bar", "x"), file("package/:x", "x"), file("package/9:x", "x")}, nil},
	}
}
