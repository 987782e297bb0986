package main

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"time"
)

// The large packument: as many releases, and as large, as those of packages
// that publish every night.
const (
	largeName     = "large-"
	largeVersions = 2600
)

// largeVersion is the i-th version, 0.0.0 to 64.9.3.
func largeVersion(i int) string { return fmt.Sprintf("%d.%d.%d", i/40, i/4%10, i%4) }

// largePackument makes one of about 20 MB in the shape that the registry of npm
// gives: a manifest per version with some hundred dependencies, most of them
// the same ones from version to version, digests and signatures that are not,
// and a time for each.
func largePackument(name, base string) []byte {
	noise := rand.NewChaCha8([32]byte{2})
	versions, times := map[string]any{}, map[string]string{}
	published := time.Date(2020, 1, 1, 12, 0, 0, 0, time.UTC)
	for i := range largeVersions {
		v := largeVersion(i)
		versions[v] = largeManifest(name, v, base, i, noise)
		published = published.Add(16 * time.Hour)
		times[v] = published.Format("2006-01-02T15:04:05.000Z")
	}
	times["created"], times["modified"] = times[largeVersion(0)], times[largeVersion(largeVersions-1)]
	text, _ := json.Marshal(map[string]any{ // maps, texts and numbers only
		"_id": name, "_rev": "4711-" + hexOf(noise, 16), "name": name, "description": "A package that is published every night.",
		"dist-tags": map[string]string{"latest": largeVersion(largeVersions - 1)}, "versions": versions, "time": times,
		"maintainers": people(5), "license": "MIT", "homepage": "https://project.example/large", "readme": string(longText()), "readmeFilename": "README.md",
	})
	return text
}

func largeManifest(name, version, base string, i int, noise *rand.ChaCha8) map[string]any {
	tarball := fmt.Sprintf("%s%s/-/%s-%s.tgz", base, name, name, version)
	return map[string]any{
		"_id": name + "@" + version, "name": name, "version": version, "description": "A package that is published every night.",
		"main": "./dist/index.js", "types": "./dist/index.d.ts", "bin": map[string]string{name: "./dist/bin/" + name},
		"license": "MIT", "homepage": "https://project.example/large", "author": people(1)[0], "maintainers": people(5),
		"repository":   map[string]string{"type": "git", "url": "git+https://code.example/large/large.git", "directory": "packages/large"},
		"bugs":         map[string]string{"url": "https://code.example/large/large/issues"},
		"engines":      map[string]string{"node": "^18.18.0 || ^19.8.0 || >= 20.0.0"},
		"scripts":      words("task-%d", "node ./scripts/task-%d.js --production --quiet", 25, 0),
		"dependencies": words("dependency-%d", "^%d.2.1", 12, i/400), "devDependencies": words("@types/development-%d", "%d.0.14", 110, i/100),
		"peerDependencies": words("peer-%d", "^%d.2.0 || ^19.0.0", 5, i/800), "gitHead": hexOf(noise, 20),
		"_nodeVersion": "20.11.1", "_npmVersion": "10.4.0", "_npmUser": people(1)[0],
		"_npmOperationalInternal": map[string]string{"host": "s3://packages", "tmp": fmt.Sprintf("tmp/%s_%s_%s", name, version, hexOf(noise, 16))},
		"dist": map[string]any{
			"tarball": tarball, "shasum": hexOf(noise, 20), "integrity": "sha512-" + base64.StdEncoding.EncodeToString(bytesOf(noise, 64)),
			"fileCount": 3000 + i%100, "unpackedSize": 40_000_000 + i*1000,
			"signatures": []map[string]string{{
				"keyid": "SHA256:jl3bwswu80PjjokCgh0o2w5c2U4LhQAE57gj9cz1kzA", "sig": base64.StdEncoding.EncodeToString(bytesOf(noise, 70)),
			}},
		},
	}
}

func words(name, value string, n, shift int) map[string]string {
	out := make(map[string]string, n)
	for i := range n {
		out[fmt.Sprintf(name, i)] = fmt.Sprintf(value, i+shift)
	}
	return out
}

func people(n int) []map[string]string {
	out := make([]map[string]string, n)
	for i := range out {
		out[i] = map[string]string{"name": fmt.Sprintf("publisher%d", i), "email": fmt.Sprintf("publisher%d@project.example", i)}
	}
	return out
}

func longText() []byte {
	text := make([]byte, 0, 40<<10)
	for i := 0; len(text) < 40<<10; i++ {
		text = fmt.Appendf(text, "## Chapter %d\n\nWhat there is to say about it.\n\n", i)
	}
	return text
}

func bytesOf(noise *rand.ChaCha8, n int) []byte {
	out := make([]byte, n)
	_, _ = noise.Read(out) // it never fails
	return out
}

func hexOf(noise *rand.ChaCha8, n int) string { return hex.EncodeToString(bytesOf(noise, n)) }
