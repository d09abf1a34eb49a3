// Package github reads workflow runs and their artifacts from GitHub's API, starts workflows, and
// comments on issues and discussions.
//
//  1. ParseRepository reads the name or URL of a repository.
//  2. A Client lists runs and artifacts page by page and downloads artifacts. It waits for rate
//     limits to pass, retries what may pass, and gives up with an error that says what to do.
//  3. Comment and DispatchWorkflow write, once: Later says whether and when to try again.
//  4. Unzip unpacks an artifact. Artifacts are untrusted: nothing leaves the directory, nothing
//     becomes a link, and size and number are bounded.
package github
