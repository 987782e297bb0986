// Package differential has the clients' own unpackers (npm's, pnpm's, yarn's, pip's, uv's and go's)
// unpack what our readers of archives accept. The files that land must be those that our readers
// named, all of them and no others, none beside the folder that they are for, and what would run at
// an install must be what was reported.
//
// The known tricks and a few archives made at random are tried in each run, and
// many more with COFFERDAM_LONG=1. The unpackers come from the machine's
// registries, by their clients, into the repository's cache.
package differential
