// Package toy proves that an ecosystem and an installer are what CONTRIBUTING.md says: new
// files in folders of their own, and lines in lists. Its testdata has both, as they would
// lie in the repository, with tests that take them through a policy, the gateway, the
// decisions and a plan; the package's test builds Cofferdam with them.
package toy
