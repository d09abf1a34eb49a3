// Package fleet runs a fleet of real processes, in networks of their own where the test may make
// them, and kills, cuts off and starves them.
package fleet
