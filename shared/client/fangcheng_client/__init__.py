"""What an integrator needs beside the stubs: connections and streams that resume."""
