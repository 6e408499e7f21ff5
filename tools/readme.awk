# Replaces what stands between the kernel-table markers of README.md with the file named by `table`.
/<!-- kernels: begin/ {
    print
    while ((getline line < table) > 0)
        print line
    skipping = 1
}
/<!-- kernels: end/ { skipping = 0 }
!skipping { print }
