// Package vendortest holds tests only: the vendors' own Go SDKs are run against the scripted model,
// as independent judges of our wire formats. They are separate because compiling the SDKs takes
// minutes under the fuzzing and race instrumentation, which the tests of the other packages should
// not have to wait for.
package vendortest
