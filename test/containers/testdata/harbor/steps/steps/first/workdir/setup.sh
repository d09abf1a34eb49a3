#!/bin/bash
touch /tmp/first
